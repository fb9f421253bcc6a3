//! A trial, and the stores on which it can run.

use std::sync::mpsc::Receiver;

use loadstone_measure::borders::Borders;
use loadstone_measure::client::{ClientContext, drive_thread};
use loadstone_measure::clock::ThreadTimer;
use loadstone_measure::control::{Control, End};
use loadstone_measure::crew::{OpenedStore, Target};
use loadstone_measure::observer::Observer;
use loadstone_measure::task::{Task, Work};
use loadstone_session::Options;
use loadstone_session::erased::{Driving, StoreType, VirtualSession};
use loadstone_session::null::NullSession;
use loadstone_stress::columns::ColumnsSpec;
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::TrialSpec;

use crate::records::target::RecordTarget;
use crate::stress::StressWork;

/// A trial of any workload kind.
pub struct Trial<'a> {
    pub spec: &'a TrialSpec,
    pub stores: &'a Stores,
    pub controls: &'a Receiver<Control>,
    pub observer: &'a mut dyn Observer,
}

/// The stores that this engine contains.
#[derive(Debug)]
pub struct Stores {
    pub records: &'static [RecordTarget],
    pub statements: &'static [StatementTarget],
}

/// A type of record store, used through virtual calls as a target for any work that its sessions can perform.
#[derive(Debug)]
pub struct VirtualTarget(pub &'static StoreType);

impl<W: Work<VirtualSession>> Target<W> for VirtualTarget {
    fn driving_mode(&self) -> Driving {
        self.0.driving
    }

    fn probe_operations(&self, task: &Task<W>, borders: &Borders, context: ClientContext<'_>) {
        let mut session = VirtualSession::new(NullSession::default());
        drive_thread(task, borders, ThreadTimer::default(), &mut session, context);
    }

    fn open_store(&self, options: &Options) -> Result<OpenedStore<W>, EngineError> {
        Ok(OpenedStore::with_records(self.0.open(options)?, |client| Box::new(client), |client| Box::new(client)))
    }
}

/// Runs statements with generated values until the end of the trial. The server determines the types of the columns.
pub type RunColumns = fn(&TrialSpec, &ColumnsSpec, &Receiver<Control>, &mut dyn Observer) -> Result<End, EngineError>;

/// A type of statement store.
#[derive(Debug)]
pub struct StatementTarget {
    pub name: &'static str,
    /// The target for cassandra-stress, which first executes the given definitions.
    pub stress: fn(&[String]) -> Box<dyn Target<StressWork> + '_>,
    /// Runs statements with values from column generators.
    pub columns: RunColumns,
}

impl Stores {
    /// Finds the record store with this name.
    pub fn find_records(&self, name: &str) -> Result<&'static RecordTarget, EngineError> {
        self.records.iter().find(|target| target.store.about.name == name).ok_or_else(|| self.refuse_name(name))
    }

    /// The error for an unknown record store.
    pub fn refuse_name(&self, name: &str) -> EngineError {
        let names = self.records.iter().map(|target| target.store.about.name);
        let error = EngineError::usage(format!("there is no store \"{name}\""));
        let all = names.clone().collect::<Vec<_>>().join(", ");
        match loadstone_wire::suggest::did_you_mean(name, names) {
            Some(near) => error.hint(format!("did you mean {near}? The stores are {all}")),
            None => error.hint(format!("the stores are {all}")),
        }
    }
}
