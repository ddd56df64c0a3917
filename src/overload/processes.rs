//! What is done to the lab's processes: servers that hang, and servers that die.

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};

use super::Ground;

/// Stops a member's process: its connections stay, and nobody answers.
pub fn stop(ground: &Ground, number: usize) -> anyhow::Result<()> {
    signal(ground, number, Signal::STOP)
}

/// Lets it go on.
pub fn go_on(ground: &Ground, number: usize) -> anyhow::Result<()> {
    signal(ground, number, Signal::CONT)
}

/// Kills it.
pub fn kill(ground: &Ground, number: usize) -> anyhow::Result<()> {
    signal(ground, number, Signal::KILL)
}

/// Starts it again, with the data it had.
pub async fn restart(ground: &Ground, number: usize) -> anyhow::Result<()> {
    let (lab, index) = ground.lab_member(number).context("only the lab's members can be started again")?;
    lab.restart(index).await
}

fn signal(ground: &Ground, number: usize, signal: Signal) -> anyhow::Result<()> {
    let (lab, index) = ground.lab_member(number).context("signals are for the lab's members")?;
    let member = lab.members()[index];
    // Its number may be another process's by now.
    if let Some(death) = lab.deaths().into_iter().find(|death| death.member == member) {
        anyhow::bail!("{death}");
    }
    let pid =
        i32::try_from(lab.pids()[index]).ok().and_then(Pid::from_raw).context("it has no process id")?;
    kill_process(pid, signal)
        .with_context(|| format!("the lab's process {} gets no signal", pid.as_raw_pid()))
}
