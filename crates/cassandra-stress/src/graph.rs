//! The page of `-graph`: a chart of the intervals, and the object `stats`, which scripts can read from the page.
//!
//! The object has the same form as the tool's (Cassandra's `StressGraph.java`). For each run, it contains `test`,
//! `revision`, `command`, `metrics`, `intervals`, and the labels of `Results:` in lower case. If the page already
//! exists, the run is added to it.

use std::fmt::Display;
use std::fs::{OpenOptions, canonicalize, metadata, read_to_string, remove_file, rename, write};
use std::io::Read;
use std::path::PathBuf;

use loadstone_stress::output::METRICS;
use loadstone_stress::settings::GraphSettings;
use loadstone_wire::error::EngineError;
use serde_json::{Map, Value, json};

const PAGE: &str = include_str!("graph.html");
const START: &str = "/* stats start */";
const END: &str = "/* stats end */";

/// A page and the runs that it shows.
#[derive(Debug)]
pub struct Graph {
    path: PathBuf,
    /// The page's object when the run began. Other processes may add runs to the page until this run ends.
    stats: Value,
    runs: Vec<Value>,
    test: String,
    revision: String,
    command: String,
}

impl Graph {
    /// Opens the page if the settings name one. Fails if the file is not a page of this type.
    pub fn open(settings: &GraphSettings, arguments: &[String]) -> Result<Option<Self>, EngineError> {
        let Some(path) = &settings.file else { return Ok(None) };
        let refuse = |why: &dyn Display| {
            EngineError::usage(format!("cannot write {path}: {why}"))
                .hint("-graph file= names a page in a writable directory")
        };
        // Reading a device or a pipe may never finish.
        if metadata(path).is_ok_and(|entry| !entry.is_file()) {
            return Err(refuse(&"not a regular file"));
        }
        let mut page = String::new();
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let target = file.and_then(|mut file| file.read_to_string(&mut page)).and_then(|_| canonicalize(path));
        let target = target.map_err(|error| refuse(&error))?;
        let title = settings.title.clone().unwrap_or_else(|| format!("cassandra-stress - {}", settings.operation));
        let stats = if page.is_empty() { Some(json!({ "title": title, "stats": [] })) } else { parse_page(&page) };
        let stats = stats.ok_or_else(|| {
            EngineError::usage(format!("{path} has no `stats` of cassandra-stress, to which a run could be added"))
                .hint("-graph file= names a new file, or a page of an earlier run")
        })?;
        Ok(Some(Self {
            path: target,
            stats,
            runs: Vec::new(),
            test: settings.operation.clone(),
            revision: settings.revision.clone(),
            command: mask_passwords(&arguments.join(" ")),
        }))
    }

    /// Adds a run from its printed rows and results. `threads` is shown if a command has several runs.
    pub fn add_run(&mut self, printed: &str, threads: Option<u32>) {
        let revision = match threads {
            Some(threads) => format!("{} - {threads} threads", self.revision),
            None => self.revision.clone(),
        };
        let (rows, results) = printed.split_once("\nResults:\n").unwrap_or((printed, ""));
        let mut run = Map::new();
        for (label, text) in results.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(':'))
        {
            run.insert(label.trim().to_lowercase(), text.trim().into());
        }
        run.insert("test".to_owned(), self.test.clone().into());
        run.insert("revision".to_owned(), revision.into());
        run.insert("command".to_owned(), self.command.clone().into());
        run.insert("metrics".to_owned(), METRICS.to_vec().into());
        run.insert("intervals".to_owned(), rows.lines().filter_map(parse_row).collect());
        self.runs.push(run.into());
    }

    /// Adds the runs to the page, after runs that other processes have added since it was opened. If writing fails, the
    /// page remains unchanged.
    pub fn write_page(mut self) -> Result<(), EngineError> {
        let current = read_to_string(&self.path).ok().and_then(|page| parse_page(&page));
        let mut stats = current.unwrap_or(self.stats);
        if let Some(runs) = stats["stats"].as_array_mut() {
            runs.append(&mut self.runs);
        }
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(format!(".{}", std::process::id()));
        let written = write(&temporary, render_page(&stats)).and_then(|()| rename(&temporary, &self.path));
        written.map_err(|error| {
            let _ = remove_file(&temporary);
            EngineError::failed(format!("cannot write {}: {error}", self.path.display()))
                .hint("free space and run again")
        })
    }
}

/// Parses the values of a printed row; `None` for any other line. The operation's name becomes null, as in the tool.
fn parse_row(line: &str) -> Option<Value> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let is_row = cells.len() == METRICS.len() && cells[1].parse::<u64>().is_ok();
    is_row.then(|| cells.iter().map(|cell| serde_json::from_str::<Value>(cell).unwrap_or_default()).collect())
}

/// The `stats` object of a page.
fn parse_page(page: &str) -> Option<Value> {
    let text = page.split_once(START)?.1.split_once(END)?.0.trim();
    let text = text.strip_prefix("stats = ").or_else(|| text.strip_prefix("var stats = "))?.trim_end_matches(';');
    let stats: Value = serde_json::from_str(text).ok()?;
    stats["stats"].is_array().then_some(stats)
}

fn render_page(stats: &Value) -> String {
    // A title may contain the closing tag of a script.
    let text = stats.to_string().replace("</", "<\\/");
    PAGE.replacen(START, &format!("{START}\nstats = {text};"), 1)
}

/// Masks the values of `password=`, including the passwords of key stores. As with every option, the name may be in
/// upper case, and `=` may have spaces on both sides.
fn mask_passwords(text: &str) -> String {
    const NAME: &str = "password";
    let mut masked = String::new();
    let mut rest = text;
    while let Some(at) = rest.to_ascii_lowercase().find(NAME) {
        let (name, after) = rest.split_at(at + NAME.len());
        masked.push_str(name);
        rest = after;
        if let Some(value) = after.trim_start().strip_prefix('=').map(str::trim_start) {
            masked.push_str("=*******");
            rest = &value[value.find([' ', ',', ')']).unwrap_or(value.len())..];
        }
    }
    masked + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = include_str!("../../stress/fixtures/write.txt");

    fn open_graph(directory: &str, title: &str) -> (Graph, GraphSettings) {
        let path = std::env::temp_dir().join(format!("loadstone-graph-{}-{directory}.html", std::process::id()));
        let settings = GraphSettings {
            file: path.to_str().map(str::to_owned),
            revision: "first".to_owned(),
            title: Some(title.to_owned()),
            operation: "WRITE".to_owned(),
        };
        let arguments = ["write", "-mode", "native", "cql3", "password=secret", "-graph"].map(str::to_owned);
        (Graph::open(&settings, &arguments).unwrap().unwrap(), settings)
    }

    #[test]
    fn page_has_every_interval_and_result() {
        let (mut graph, settings) = open_graph("rows", "</script><b>");
        graph.add_run(SAMPLE, Some(20));
        graph.write_page().unwrap();
        let mut graph = Graph::open(&settings, &[]).unwrap().unwrap();
        graph.add_run(SAMPLE, None);
        graph.write_page().unwrap();
        let path = settings.file.unwrap();
        let page = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(!page.contains("</script><b>") && !page.contains("secret"));
        let stats = parse_page(&page).unwrap();
        assert_eq!(stats["title"], "</script><b>");
        let runs = stats["stats"].as_array().unwrap();
        let rows = SAMPLE.lines().filter(|line| line.starts_with("total,")).count();
        assert!(rows > 20);
        for (run, revision) in runs.iter().zip(["first - 20 threads", "first"]) {
            assert_eq!(run["revision"], revision);
            assert_eq!(run["metrics"].as_array().unwrap().len(), 19);
            let intervals = run["intervals"].as_array().unwrap();
            assert_eq!(intervals.len(), rows);
            assert!(intervals.iter().all(|row| row[0].is_null() && row[1].is_u64() && row[5].is_f64()));
        }
        assert_eq!(runs[0]["command"], "write -mode native cql3 password=******* -graph");
        assert!(runs[0]["op rate"].as_str().unwrap().ends_with("op/s]"));
        assert!(runs[0]["total operation time"].as_str().unwrap().starts_with("00:01"));
    }

    #[test]
    fn passwords_are_masked_in_every_notation() {
        for line in ["user=a password=secret", "PASSWORD= secret", "keystore-password =secret,b", "(password = secret)"]
        {
            assert!(!mask_passwords(line).contains("secret"), "{}", mask_passwords(line));
        }
    }

    #[test]
    fn simultaneous_runs_share_a_page() {
        let (mut first, settings) = open_graph("both", "title");
        let mut second = Graph::open(&settings, &[]).unwrap().unwrap();
        first.add_run(SAMPLE, None);
        second.add_run(SAMPLE, None);
        first.write_page().unwrap();
        second.write_page().unwrap();
        let path = settings.file.unwrap();
        let page = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(parse_page(&page).unwrap()["stats"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn only_regular_files_can_be_pages() {
        for path in ["/dev/zero", "/"] {
            let (revision, operation) = (String::new(), String::new());
            let settings = GraphSettings { file: Some(path.to_owned()), revision, title: None, operation };
            let refusal = Graph::open(&settings, &[]).unwrap_err().to_string();
            assert!(refusal.contains(&format!("cannot write {path}: not a regular file")), "{refusal}");
        }
    }

    #[test]
    fn foreign_file_is_left_alone() {
        let (graph, settings) = open_graph("foreign", "title");
        drop(graph);
        let path = settings.file.clone().unwrap();
        std::fs::write(&path, "a diary").unwrap();
        let refusal = Graph::open(&settings, &[]).unwrap_err().to_string();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a diary");
        std::fs::remove_file(path).unwrap();
        assert!(refusal.contains("has no `stats` of cassandra-stress"), "{refusal}");
    }
}
