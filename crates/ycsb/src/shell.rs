//! YCSB's shell, in which users enter operations interactively.

use std::io::BufRead;
use std::time::Instant;

use loadstone_load::{Projection, Row, Status};
use loadstone_session::erased::{StoreType, VirtualSession};
use loadstone_session::{Connection, EngineError, Options, Rows, Session};

use loadstone_wire::output::{print_err, print_out};
use loadstone_wire::spec::TrialSpec;

const HELP: &str = "\
Commands:
  read KEY [FIELD …]              read a record, or some of its fields
  scan KEY COUNT [FIELD …]        read COUNT records in key order from KEY on
  insert KEY NAME=VALUE …         write a whole record
  update KEY NAME=VALUE …         merge fields into a record
  delete KEY                      remove a record
  table [NAME]                    show the name of the table, or open another
  help
  quit
";

/// Runs the shell on a store.
pub fn main(spec: &TrialSpec) -> Result<u8, EngineError> {
    let mut table = spec.work.rules().table_name().to_owned();
    print_err(&format!("Loadstone shell on {}; \"help\" shows the commands\n", spec.store.name));
    loop {
        match answer_all(&loadstone_registry::ENGINE_STORES.find_records(&spec.store.name)?.store, spec, &table)? {
            Next::Quit => return Ok(0),
            Next::Table(other) => table = other,
        }
    }
}

enum Next {
    Quit,
    Table(String),
}

/// Executes the commands for one table.
fn answer_all(store: &StoreType, spec: &TrialSpec, table: &str) -> Result<Next, EngineError> {
    let store = store.open(&Options {
        properties: spec.store.properties.clone(),
        durability: spec.store.durability,
        table: table.to_owned(),
        create: true,
        clients: 1,
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| EngineError::failed(format!("cannot start an executor: {error}")))?;
    let tasks = tokio::task::LocalSet::new();
    let mut session = tasks.block_on(&runtime, async {
        let mut session = store.session()?;
        session.connect().await?;
        Ok::<_, EngineError>(session)
    })?;
    let mut next = Next::Quit;
    let stdin = std::io::stdin();
    print_err("> ");
    for line in stdin.lock().lines().map_while(Result::ok) {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        match arguments.first().copied() {
            None => {}
            Some("quit") => break,
            Some("help") => print_out(HELP),
            Some("table") => match arguments.get(1) {
                Some(name) => {
                    next = Next::Table((*name).to_owned());
                    break;
                }
                None => print_out(&format!("Using table \"{table}\"\n")),
            },
            Some(_) => {
                let start = Instant::now();
                print_out(&tasks.block_on(&runtime, answer(&mut session, &arguments)));
                print_out(&format!("{} ms\n", start.elapsed().as_millis()));
            }
        }
        print_err("> ");
    }
    drop(session);
    store.close()?;
    Ok(next)
}

async fn answer(session: &mut VirtualSession, arguments: &[&str]) -> String {
    let key = arguments.get(1).map(|key| key.as_bytes());
    let (mut row, mut rows) = (Row::default(), Rows::default());
    let from = if arguments[0] == "scan" { 3 } else { 2 };
    let names: Vec<String> = arguments.iter().skip(from).map(|&name| name.to_owned()).collect();
    let projection = if names.is_empty() { Projection::All } else { Projection::Names(&names) };
    let status = match (arguments[0], key) {
        ("read", Some(key)) => session.read(key, projection, &mut row).await,
        ("scan", Some(key)) => match arguments.get(2).and_then(|count| count.parse().ok()) {
            Some(count) => session.scan(key, count, projection, &mut rows).await,
            None => return "error: scan takes a key and a number of records\n".to_owned(),
        },
        ("insert" | "update", Some(key)) => {
            for word in &arguments[2..] {
                match word.split_once('=') {
                    Some((name, value)) => row.push_field(name.as_bytes(), value.as_bytes()),
                    None => return format!("error: \"{word}\" is not NAME=VALUE\n"),
                }
            }
            let status = if arguments[0] == "insert" {
                session.insert(key, &row).await
            } else {
                session.update(key, &row).await
            };
            row.clear_fields();
            status
        }
        ("delete", Some(key)) => session.delete(key).await,
        ("read" | "scan" | "insert" | "update" | "delete", None) => {
            return format!("error: {} takes a key\n", arguments[0]);
        }
        (other, _) => return format!("error: unknown command \"{other}\"; \"help\" shows the commands\n"),
    };
    let mut text = format!("Return code: {}\n", status.name());
    if status != Status::Ok {
        text.extend(session.last_error().map(|message| format!("{message}\n")));
    }
    text.push_str(&fields(&row));
    for (key, row) in rows.iter() {
        text.push_str(&format!("--------------------------------\nRecord {}\n", String::from_utf8_lossy(key)));
        text.push_str(&fields(row));
    }
    text
}

fn fields(row: &Row) -> String {
    row.fields()
        .flatten()
        .map(|(name, value)| format!("{}={}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value)))
        .collect()
}
