//! `certificates`: creates PEM files for test servers.

use std::path::Path;

use loadstone_stores::certificates;
use loadstone_wire::error::EngineError;

/// The help text.
pub const USAGE: &str = "\
usage: loadstone-engine certificates DIR [--user NAME] HOST…

Writes a CA, a server's certificate for the hosts, and a client's certificate for NAME (default: client), as PEM files.
";

const EXAMPLE: &str = "loadstone-engine certificates certificates localhost 127.0.0.1";

/// Writes the files. Returns the exit code.
pub fn main(arguments: &[String]) -> Result<u8, EngineError> {
    let mut remaining: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut user = "client";
    if let Some(at) = remaining.iter().position(|&word| word == "--user") {
        let missing = || EngineError::usage("--user needs a name").hint(EXAMPLE);
        user = remaining.get(at + 1).copied().ok_or_else(missing)?;
        remaining.drain(at..at + 2);
    }
    match *remaining.as_slice() {
        [directory, ref hosts @ ..] if !hosts.is_empty() && !remaining.iter().any(|word| word.starts_with('-')) => {
            let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
            certificates::write(Path::new(directory), &hosts, user)?;
            Ok(0)
        }
        _ => Err(EngineError::usage("certificates takes a directory and the hosts of a server").hint(EXAMPLE)),
    }
}
