//! The command `user`, its profiles from files, and their operations.

use loadstone_registry::ColumnsFault;
use loadstone_session::Options;
use loadstone_stress::columns::{BatchType, ColumnsSpec, OperationSpec, OperationWork, Part, TableSpec};
use loadstone_stress::partition::mean;
use loadstone_stress::profile::Profile;
use loadstone_stress::settings::{Settings, UserSettings};
use loadstone_stress::yaml::Mistake;
use loadstone_wire::error::EngineError;
use loadstone_wire::output::print_err;

/// Reads the profiles of a command line. There are none for commands other than `user`.
pub fn read_profiles(settings: &Settings) -> Result<Vec<Profile>, EngineError> {
    let Some(user) = &settings.command.user else { return Ok(Vec::new()) };
    user.profiles.iter().map(|path| read_profile(path)).collect()
}

fn read_profile(path: &str) -> Result<Profile, EngineError> {
    if path.contains("://") {
        return Err(EngineError::usage(format!("{path}: a profile cannot be fetched from a URL"))
            .hint("download it, and name the file"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        EngineError::usage(format!("cannot read {path}: {error}")).hint("profile= names a YAML file")
    })?;
    Profile::parse(&text).map_err(|mistakes| refuse_profile(path, &mistakes))
}

/// Prints all errors in a profile except the last, each with its line, and returns the last.
fn refuse_profile(path: &str, mistakes: &[Mistake]) -> EngineError {
    let Some((last, earlier)) = mistakes.split_last() else { return EngineError::usage(format!("cannot read {path}")) };
    for Mistake { line, message, hint } in earlier {
        print_err(&format!("error: {path}:{line}: {message}\nhint: {hint}\n"));
    }
    EngineError::usage(format!("{path}:{}: {}", last.line, last.message)).hint(last.hint.clone())
}

/// Adds the profile's path and the line to the message of an error.
pub fn add_place(settings: &Settings, profile: usize, line: usize, mut error: EngineError) -> EngineError {
    let path = settings.command.user.as_ref().and_then(|user| user.profiles.get(profile));
    if let Some(path) = path {
        error.message = format!("{path}:{line}: {}", error.message);
    }
    error
}

/// Compares the profiles with the server's tables. Prints all errors except the last, each with its line, and returns
/// the last.
pub fn check_tables(settings: &Settings, profiles: &[Profile], options: &Options) -> Result<(), EngineError> {
    let Some(user) = &settings.command.user else { return Ok(()) };
    let spec = columns_spec(settings, profiles, user)?;
    let Err(faults) = loadstone_registry::plan_columns(options, &spec) else { return Ok(()) };
    let mut errors: Vec<EngineError> = Vec::new();
    for ColumnsFault { part, reason, error } in faults {
        let (table, name) = match &part {
            Some(Part::Table(table)) => (table.clone(), "table_definition".to_owned()),
            Some(Part::Column(table, column)) => (table.clone(), format!("columnspec.{column}")),
            Some(Part::Operation(name)) => match spec.operations.iter().find(|operation| operation.name == *name) {
                Some(OperationSpec { table, work, .. }) => {
                    let query = || name.strip_prefix(&format!("{}.", table.to_lowercase())).unwrap_or(name);
                    let part = match work {
                        OperationWork::Insert | OperationWork::Validate => "insert".to_owned(),
                        _ => format!("queries.{}", query()),
                    };
                    (table.clone(), part)
                }
                None => return Err(error),
            },
            None => return Err(error),
        };
        errors.push(match profiles.iter().position(|profile| profile.table.name == table) {
            Some(at) => add_place(settings, at, profiles[at].line_of(&name), EngineError { message: reason, ..error }),
            None => error,
        });
    }
    let last = errors.pop();
    for EngineError { message, hint, .. } in errors {
        print_err(&format!("error: {message}\nhint: {}\n", hint.unwrap_or_default()));
    }
    last.map_or(Ok(()), Err)
}

/// The workload of these profiles.
pub fn columns_spec(
    settings: &Settings,
    profiles: &[Profile],
    user: &UserSettings,
) -> Result<ColumnsSpec, EngineError> {
    let mut tables: Vec<TableSpec> = Vec::new();
    for (at, profile) in profiles.iter().enumerate() {
        let mut table = profile.table.clone();
        if tables.iter().any(|other| other.name == table.name) {
            let error = EngineError::usage(format!("two profiles are named {}", table.name))
                .hint("give each profile a different specname:");
            return Err(add_place(settings, at, profile.line_of("specname"), error));
        }
        // The command line takes precedence over the profile.
        let insert = &settings.insert;
        table.insert.partitions = insert.partitions.clone().or(table.insert.partitions);
        table.insert.select = insert.select_ratio.clone().or(table.insert.select);
        if !insert.row_population_ratio.is_full() {
            table.insert.row_population = Some(insert.row_population_ratio.clone());
        }
        table.insert.batch = insert.batch_type.as_deref().and_then(BatchType::parse).unwrap_or(table.insert.batch);
        tables.push(table);
    }
    let mut operations = Vec::new();
    for (name, weight) in &user.operations {
        operations.push(OperationSpec { name: name.clone(), weight: *weight, ..find_operation(name, profiles)? });
    }
    let visits = mean(Some(&settings.insert.visits)).map_err(EngineError::usage)?.round().clamp(1.0, 1e9) as u32;
    Ok(ColumnsSpec {
        compat: settings.compat,
        // The front end creates the tables before the trial.
        definitions: Vec::new(),
        tables,
        operations,
        clustering: settings.command.clustering.as_ref().map(|named| named.spec.clone()),
        population: settings.population.selection.clone(),
        share: settings.population.share,
        revisit: settings.insert.revisit.clone(),
        visits,
        order: settings.population.order,
        split_factor: settings.token_range.split_factor,
        unprepared: !settings.mode.prepared,
        written_by_tool: true,
    })
}

/// Finds the operation with this name: `insert`, `validate`, `QUERY`, or `SPECNAME.OPERATION`. The first profile is the
/// default.
fn find_operation(name: &str, profiles: &[Profile]) -> Result<OperationSpec, EngineError> {
    let of_profile = |profile: &Profile, operation: &str| -> Option<OperationSpec> {
        let work = match operation {
            "insert" => OperationWork::Insert,
            "validate" => OperationWork::Validate,
            _ => {
                let query = profile.queries.iter().find(|query| query.name == operation);
                let query = query.map(|query| OperationWork::Query {
                    cql: query.cql.clone(),
                    fields: query.fields,
                    validates: query.validates,
                });
                let ranges = profile.token_range_queries.iter().find(|query| query.name == operation);
                query.or_else(|| {
                    let query = ranges?;
                    Some(OperationWork::TokenRange { columns: query.columns.clone(), page_rows: query.page_rows })
                })?
            }
        };
        Some(OperationSpec { name: String::new(), weight: 0.0, table: profile.table.name.clone(), work })
    };
    let qualified = profiles.iter().find_map(|profile| {
        let operation = name.strip_prefix(&profile.table.name.to_lowercase())?.strip_prefix('.')?;
        of_profile(profile, operation)
    });
    let operation = qualified.or_else(|| of_profile(profiles.first()?, name));
    operation.ok_or_else(|| {
        let mut names = vec!["insert".to_owned(), "validate".to_owned()];
        for (at, profile) in profiles.iter().enumerate() {
            let prefix = if at == 0 { String::new() } else { format!("{}.", profile.table.name) };
            let queries = profile.queries.iter().map(|query| &query.name);
            let queries = queries.chain(profile.token_range_queries.iter().map(|query| &query.name));
            names.extend(queries.map(|name| format!("{prefix}{name}")));
        }
        EngineError::usage(format!("No query defined with name {name}"))
            .hint(format!("the operations are {}", names.join(", ")))
    })
}
