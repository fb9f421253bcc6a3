use super::*;
use crate::columns::{Fields, OperationSpec, default_revisit};
use crate::compat::Compat;
use crate::population::Selection;
use crate::settings::Order;

fn column(name: &str, role: &str, position: i32, kind: &str, is_frozen: bool) -> SchemaColumn {
    SchemaColumn { name: name.into(), role: role.into(), position, kind: kind.into(), is_frozen }
}

fn schema() -> TableSchema {
    TableSchema {
        columns: vec![
            column("k", "partition_key", 0, "int", false),
            column("Name", "clustering", 0, "text", false),
            column("tags", "regular", -1, "set<text>", false),
            column("fixed", "regular", -1, "list<int>", true),
            column("s", "static", -1, "int", false),
        ],
    }
}

fn spec(work: OperationWork) -> ColumnsSpec {
    let table = TableSpec { name: "t".into(), keyspace: "ks".into(), table: "Tab".into(), ..TableSpec::default() };
    ColumnsSpec {
        compat: Compat::V4,
        definitions: Vec::new(),
        tables: vec![table],
        operations: vec![OperationSpec { name: "op".into(), weight: 1.0, table: "t".into(), work }],
        clustering: None,
        population: Selection::Sequence { first: 1, last: 100, wrap: true, read_lookback: None },
        share: None,
        revisit: default_revisit(),
        visits: 1,
        order: Order::Arbitrary,
        split_factor: 1,
        unprepared: false,
        written_by_tool: false,
    }
}

fn query(cql: &str, validates: bool) -> OperationWork {
    OperationWork::Query { cql: cql.into(), fields: Fields::Samerow, validates }
}

#[test]
fn inserts_have_the_text_of_the_tool() {
    let plan = spec(OperationWork::Insert).plan(&[schema()]).unwrap();
    assert_eq!(
        plan.operations[0].text,
        "UPDATE ks.\"Tab\" SET fixed = ?,s = ?,tags = tags + ? WHERE k = ? AND \"Name\" = ?"
    );
    let mut keys = schema();
    keys.columns.truncate(2);
    let plan = spec(OperationWork::Insert).plan(&[keys]).unwrap();
    assert_eq!(plan.operations[0].text, "INSERT INTO ks.\"Tab\" (k, \"Name\") values(?, ?)");
}

#[test]
fn columns_that_do_not_exist_are_refused() {
    let mut spec = spec(OperationWork::Insert);
    spec.tables[0].columns.push(ColumnSpec { name: "missing".into(), ..ColumnSpec::default() });
    assert!(spec.plan(&[schema()]).unwrap_err().invalid.reason.contains("no column missing"));
    assert!(spec.plan(&[TableSchema::default()]).unwrap_err().invalid.reason.contains("there is no table ks.\"Tab\""));
    let mut odd = schema();
    odd.columns[2].kind = "duration".into();
    spec.tables[0].columns.clear();
    assert!(spec.plan(&[odd]).unwrap_err().invalid.reason.contains("duration"));
}

#[test]
fn rows_that_do_not_repeat_are_not_validated() {
    let bind = |change: fn(&mut ColumnsSpec, &mut TableSchema), cql: &str| {
        let (mut spec, mut schema) = (spec(query(cql, true)), schema());
        schema.columns.remove(2);
        schema.columns.remove(2);
        change(&mut spec, &mut schema);
        let mut plan = spec.plan(&[schema]).unwrap();
        let described = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
        let results = [described("k", "int"), described("Name", "text"), described("s", "int")];
        let markers = [described("k", "int")];
        plan.bind(&spec, 0, &markers, &results)
            .map(|()| plan.operations[0].conditions.clone())
            .map_err(|error| error.invalid.reason)
    };
    let cql = "SELECT * FROM t WHERE k = ?";
    let whole = Condition { place: ColumnPlace::Key(0), operator: Operator::Equal, marker: 0 };
    assert_eq!(bind(|_, _| {}, cql), Ok(vec![whole]));
    for (change, reason) in [
        (
            (|spec, _| spec.tables[0].insert.select = crate::distribution::parse_ratio("fixed(1)/2").unwrap())
                as fn(&mut ColumnsSpec, &mut TableSchema),
            "select:",
        ),
        (|_, schema| schema.columns.push(column("l", "regular", -1, "list<int>", false)), "frozen"),
        (|_, schema| schema.columns.push(column("l", "regular", -1, "list<int>", true)), "size: fixed(N)"),
    ] {
        let error = bind(change, cql).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    assert!(bind(|_, _| {}, "SELECT * FROM t WHERE k = ? LIMIT 3").unwrap_err().contains("must be SELECT"));
}

#[test]
fn large_logged_batches_are_refused() {
    let mut spec = spec(OperationWork::Insert);
    let cluster = crate::distribution::parse_spec("fixed(70000)").ok();
    spec.tables[0].columns.push(ColumnSpec { name: "Name".into(), cluster, ..ColumnSpec::default() });
    assert!(spec.plan(&[schema()]).unwrap_err().invalid.reason.contains("a logged batch has at most 65535"));
    spec.tables[0].insert.batch = BatchType::Unlogged;
    assert!(spec.plan(&[schema()]).is_ok());
}

#[test]
fn conditional_writes_read_their_columns_first() {
    let bind = |fields| {
        let cql = "UPDATE t SET s = ?, fixed = ? WHERE k = ? AND \"Name\" = ? IF s = ?".to_owned();
        let spec = spec(OperationWork::Query { cql, fields, validates: false });
        let mut plan = spec.plan(&[schema()]).unwrap();
        let described = |(name, kind): (&str, &str)| (name.to_owned(), kind.to_owned());
        let markers =
            [("s", "int"), ("fixed", "list<int>"), ("k", "int"), ("Name", "text"), ("s", "int")].map(described);
        plan.bind(&spec, 0, &markers, &[]).map(|()| plan.operations[0].condition_read.clone())
    };
    let read = ConditionRead {
        text: "SELECT s FROM ks.\"Tab\" WHERE k = ? AND \"Name\" = ?".to_owned(),
        keys: vec![ColumnPlace::Key(0), ColumnPlace::Clustering(0)],
        markers: vec![4],
    };
    assert_eq!(bind(Fields::Samerow), Ok(Some(read)));
    assert!(bind(Fields::Multirow).unwrap_err().invalid.reason.contains("fields: samerow"));
}
