//! The block about profiles at the start of a run.
//!
//! Source: `StressProfile.printSettings`. The tool prints the columns in the order of a hash table; here they are in
//! the order of the file.

use crate::columns::Fields;
use crate::profile::Profile;

/// The block about the profiles, followed by an empty line; empty if there are no profiles.
#[must_use]
pub fn render_profiles(profiles: &[Profile]) -> String {
    if profiles.is_empty() {
        return String::new();
    }
    let mut text = "******************** Profile(s) ********************\n".to_owned();
    for profile in profiles {
        let table = &profile.table;
        let definition = |text: &Option<String>| text.as_deref().unwrap_or("null").to_owned();
        text.push_str(&format!("  Keyspace Name: {}\n", table.keyspace));
        text.push_str(&format!("  Keyspace CQL: \n***\n{}***\n\n", definition(&profile.keyspace_definition)));
        text.push_str(&format!("  Table Name: {}\n", table.table));
        text.push_str(&format!("  Table CQL: \n***\n{}***\n\n", definition(&profile.table_definition)));
        let extra = if profile.extra_definitions.is_empty() {
            "null".to_owned()
        } else {
            format!("[{}]", profile.extra_definitions.join(", "))
        };
        text.push_str(&format!("  Extra Schema Definitions: {extra}\n  Generator Configs:\n"));
        for column in &table.columns {
            let parts = [("Clustering", &column.cluster), ("Size", &column.size), ("Identity", &column.population)];
            let parts = parts.iter().filter_map(|(label, spec)| spec.as_ref().map(|spec| format!("{label}: {spec};")));
            text.push_str(&format!("    {}: {}\n", column.name, parts.collect::<String>()));
        }
        text.push_str("  Query Definitions:\n");
        for query in &profile.queries {
            let fields = if query.fields == Fields::Samerow { "samerow" } else { "multirow" };
            text.push_str(&format!("    {}: CQL:{};Fields:{fields};\n", query.name, query.cql));
        }
        text.push_str("  Token Range Queries:\n");
        for query in &profile.token_range_queries {
            text.push_str(&format!("    {}: Columns:{};Page Size:{};\n", query.name, query.columns, query.page_rows));
        }
    }
    text + "\n"
}
