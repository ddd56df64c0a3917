//! The one integration test binary: every file beside this one is a part of it, so that they share a lab.

mod application;
mod attribution;
mod bad_days;
mod bad_input;
mod clients;
mod compare;
mod drivers;
mod flow;
mod gate;
mod items;
mod kinds;
mod lab;
mod live;
mod measuring;
mod metrics;
mod native;
mod options;
mod pacing;
mod prepare;
mod profiles;
mod recovery;
mod report;
mod running;
mod screen;
mod search;
mod shards;
mod simulate;
mod staleness;
mod support;
mod tables;
mod terminal;
mod theory;
mod thresholds;
mod timeline;
mod variants;
mod verify;

use std::sync::OnceLock;
use std::thread;

use overdrive::lab::{Lab, LabOptions, Member};
use tokio::sync::{Mutex, MutexGuard};

/// What tests may know of the lab that they share.
pub struct SharedLab {
    /// Its connection string.
    pub uri: String,
    /// Its servers' version.
    pub version: String,
    /// Its mongods; the first is the primary.
    pub members: Vec<Member>,
}

/// A lab started as the tests want it: by this process, kept by the program under test.
pub fn lab_options() -> LabOptions {
    LabOptions::kept_by(env!("CARGO_BIN_EXE_overdrive"))
}

/// For tests whose numbers others' load on the shared lab would spoil: one of them at a time.
pub async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

/// One lab for all tests that leave it as they found it; the first that asks starts it.
pub fn shared_lab() -> &'static SharedLab {
    static SHARED: OnceLock<SharedLab> = OnceLock::new();
    SHARED.get_or_init(|| {
        let (ready, lab) = std::sync::mpsc::channel();
        // Statics are never dropped and this thread never ends: the keeper sees its pipe close when the process exits.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let lab = Lab::start(&lab_options(), &|text| eprintln!("{text}")).await.unwrap();
                let members = lab.members().to_vec();
                ready
                    .send(SharedLab { uri: lab.uri().to_owned(), version: lab.version().to_owned(), members })
                    .unwrap();
                std::future::pending::<()>().await;
            });
        });
        lab.recv().expect("the shared lab starts")
    })
}
