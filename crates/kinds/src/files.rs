//! DFSIO's reads and writes of whole files, buffer by buffer.

pub mod actor;
pub mod log;

use std::sync::Arc;

use loadstone_load::{StepId, Workload};
use loadstone_session::erased::Driving;
use loadstone_session::{EngineError, Options, Store};
use loadstone_storage::file_operations::{FileOperation, FilesSpec, FilesWork};
use loadstone_storage::fs::null::NullFs;
use loadstone_storage::fs::{FileSystem, hdfs};
use loadstone_storage::store::{FileClient, FileStore, HdfsStore};

use crate::stores::Trial;
use actor::FileActor;
use loadstone_measure::borders::Borders;
use loadstone_measure::client::{ClientContext, drive_thread};
use loadstone_measure::clock::ThreadTimer;
use loadstone_measure::control::End;
use loadstone_measure::crew::{Client, Crew, OpenedStore, Target};
use loadstone_measure::task::{Task, Work, WorkKind};
use loadstone_measure::trial;
use loadstone_wire::event::{Note, Sections};
use log::FileLog;

/// The workload on files, with the outcomes of the files.
#[derive(Debug)]
pub struct FileWork {
    pub workload: FilesWork,
    pub log: FileLog,
}

impl FileWork {
    /// The workload of a spec. Fails if the spec is invalid.
    pub fn new(spec: &FilesSpec, seed: u64) -> Result<Self, EngineError> {
        let files = FilesWork::new(spec.clone(), seed);
        let workload = files.map_err(|(message, hint)| EngineError::usage(message).hint(hint))?;
        Ok(Self { workload, log: FileLog::default() })
    }
}

forward_workload!(FileWork, FileOperation);

impl WorkKind for FileWork {
    fn prepare_trial(&mut self, _spec: &loadstone_wire::spec::TrialSpec, _workers: u64) -> Result<(), EngineError> {
        self.log = FileLog::default();
        Ok(())
    }

    fn closing_notes(&self) -> Vec<Note> {
        let Some(files) = self.log.summarize_files() else { return Vec::new() };
        let (retried, nodes) = (files.retried, files.data_node_failures);
        if retried + nodes == 0 {
            return Vec::new();
        }
        let last = hdfs::last_warning();
        let last = if last.is_empty() { last } else { format!("; the client's last warning: {last}") };
        vec![Note {
            name: "recovered".to_owned(),
            message: format!("{nodes} attempts to use a data node failed, and {retried} requests were repeated{last}"),
            hint: "the latencies include both; see the logs of the data nodes".to_owned(),
        }]
    }

    fn summary_sections(&self, _to_unix_ns: u64) -> Sections {
        Sections { files: self.log.summarize_files(), ..Sections::default() }
    }
}

impl<F: FileSystem> Work<FileClient<F>> for FileWork {
    type Actor<'a>
        = FileActor<'a, F>
    where
        F: 'a;

    fn create_actor<'a>(task: &'a Task<Self>, session: &'a mut FileClient<F>, _worker: usize) -> Self::Actor<'a> {
        FileActor::new(task, session)
    }
}

/// Runs a trial on files.
pub fn run_trial(files: &FilesSpec, to_run: Trial<'_>) -> Result<End, EngineError> {
    let Trial { spec, controls, observer, .. } = to_run;
    let work = FileWork::new(files, spec.seed)?;
    let target: &dyn Target<FileWork> = match spec.store.name.as_str() {
        "file" => &LocalFiles,
        "hdfs" => &HdfsFiles,
        other => {
            return Err(EngineError::usage(format!("the store \"{other}\" does not hold files"))
                .hint("the file stores are file and hdfs"));
        }
    };
    trial::run_trial(spec, work, target, controls, observer)
}

/// Declares the target of a store of files, with the kind of crew that its clients need.
macro_rules! files_on {
    ($(#[$about:meta])* $target:ident: $store:ident, $crew:ident) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $target;

        impl Target<FileWork> for $target {
            fn driving_mode(&self) -> Driving {
                Driving::for_store::<$store>()
            }

            fn probe_operations(&self, task: &Task<FileWork>, borders: &Borders, context: ClientContext<'_>) {
                drive_thread(task, borders, ThreadTimer::default(), &mut FileClient::<NullFs>::default(), context);
            }

            fn open_store(&self, options: &Options) -> Result<OpenedStore<FileWork>, EngineError> {
                let store = Arc::new($store::open(options)?);
                let open = Arc::clone(&store) as _;
                let crew = |task, _by_thread| {
                    Crew::$crew(Box::new(move || {
                        Ok(Box::new(Client { session: store.session()?, task: Arc::clone(&task) }))
                    }))
                };
                Ok(OpenedStore { store: open, crew: Box::new(crew) })
            }
        }
    };
}

files_on! {
    /// Files on local disks. Their calls block.
    LocalFiles: FileStore, Threads
}

files_on! {
    /// Files on HDFS. Their clients wait for the network.
    HdfsFiles: HdfsStore, Tasks
}
