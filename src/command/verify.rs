//! `overdrive verify`: whether a driver keeps the specification of backpressure.

use std::path::Path;
use std::process::{ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::target::{check_tls_files, given_uri};
use super::{Outcome, UsageError, check_mongod, print};
use crate::cli::verify::FAIL_COMMAND;
use crate::cli::{VerifyArgs, VerifyFormat};
use crate::client::uri::Uri;
use crate::driver;
use crate::interrupts::Interrupts;
use crate::lab::{Lab, LabOptions};
use crate::plan::Driver;
use crate::stderr::tell;
use crate::verify::{Report, verify};

/// Looks at every rule and prints what was seen.
///
/// # Errors
/// [`UsageError`] for what the arguments tell; anything else means that rules could not be looked at.
pub async fn run(args: VerifyArgs) -> Result<Outcome> {
    let uri = given_uri(&args.target)?;
    check(&args, uri.as_ref()).await?;
    let mut interrupts = Interrupts::listen()?;
    let report = match args.driver.as_ref().filter(|driver| **driver != Driver::built_in()) {
        Some(driver) => by_another(driver, &args, uri.as_ref(), &mut interrupts).await?,
        None => match &uri {
            Some(uri) => verify(uri, false, &mut interrupts).await?,
            None => in_a_lab(args.mongod.as_deref(), &mut interrupts).await?,
        },
    };
    let Some(report) = report else { return Ok(Outcome::Interrupted) };
    print(&match args.format {
        VerifyFormat::Table => report.table(),
        VerifyFormat::Json => report.json()?,
        VerifyFormat::Junit => report.junit(),
    })?;
    Ok(if report.any_broken() { Outcome::RuleBroken } else { Outcome::Done })
}

/// What the arguments alone tell.
async fn check(args: &VerifyArgs, uri: Option<&Uri>) -> Result<()> {
    if let Some(driver) = args.driver.as_ref().filter(|driver| !driver.is_rust()) {
        return Err(UsageError::new(format!(
            "driver {driver} cannot be checked: the rules are looked at through the Rust driver's events, and no other has \
             them; name a version of it, like --driver 3.8.2"
        ))
        .into());
    }
    // One that is not there is told before anything is done.
    if let Some(driver) = &args.driver {
        driver::launch(driver).map_err(|error| UsageError::new(format!("{error:#}")))?;
    }
    let Some(uri) = uri else { return Ok(check_mongod(args.mongod.as_deref()).await?) };
    if args.mongod.is_some() {
        let why = "--mongod is the lab's server, and there is a deployment (from --uri, --uri-file or $OVERDRIVE_URI): leave \
                   one of them out";
        return Err(UsageError::new(why).into());
    }
    check_tls_files(uri)?;
    if !args.allow_faults.iter().any(|kind| kind == FAIL_COMMAND) {
        return Err(UsageError::new(format!(
            "rules are checked by having servers that are not the lab reject commands of overdrive's own connections: allow it \
             with --allow-faults={FAIL_COMMAND}"
        ))
        .into());
    }
    Ok(())
}

async fn in_a_lab(mongod: Option<&Path>, interrupts: &mut Interrupts) -> Result<Option<Report>> {
    let options = LabOptions { mongod: mongod.map(Path::to_owned), ..LabOptions::new()? };
    let lab = tokio::select! {
        lab = Lab::start(&options, &tell) => lab.context("the lab did not start")?,
        () = interrupts.reached(1) => return Ok(None),
    };
    let report = verify(&Uri::parse(lab.uri())?, true, interrupts).await;
    tokio::select! {
        stopped = lab.stop() => stopped?,
        // Leaving now is safe: the keeper ends the mongods without us.
        () = interrupts.reached(2) => {}
    }
    report
}

/// Has this program look that is built with another version of the driver.
async fn by_another(
    driver: &Driver,
    args: &VerifyArgs,
    uri: Option<&Uri>,
    interrupts: &mut Interrupts,
) -> Result<Option<Report>> {
    let program = driver::launch(driver)?.program;
    let mut command = Command::new(&program);
    command.args(["verify", "--format", "json"]);
    if let Some(mongod) = &args.mongod {
        command.arg("--mongod").arg(mongod);
    }
    match uri {
        // Its environment is nobody else's to read, as its arguments are.
        Some(uri) => command.env("OVERDRIVE_URI", uri.expose()).arg(format!("--allow-faults={FAIL_COMMAND}")),
        None => command.env_remove("OVERDRIVE_URI"),
    };
    // A group of its own: a Ctrl-C in the terminal reaches it through us, once.
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .with_context(|| format!("driver {driver} does not start: cannot start {}", program.display()))?;
    let (status, said) = let_end(child, interrupts).await?;
    match status.code() {
        Some(130) => Ok(None),
        Some(0 | 3) => serde_json::from_slice(&said)
            .map(Some)
            .with_context(|| format!("driver {driver}: {} says what is no report", program.display())),
        Some(2) => bail!(
            "driver {driver} was built from an overdrive that checks no rules, or checks them otherwise: build it again with \
             `overdrive driver build {driver}`"
        ),
        _ => bail!("driver {driver}: its process failed ({status})"),
    }
}

/// Waits for a child's end, which is asked for when ours is: it has faults to undo.
async fn let_end(mut child: Child, interrupts: &mut Interrupts) -> Result<(ExitStatus, Vec<u8>)> {
    let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let mut out = child.stdout.take().context("the child has no output")?;
    let ending = async {
        let mut said = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut out, &mut said).await?;
        anyhow::Ok((child.wait().await?, said))
    };
    tokio::pin!(ending);
    for times in 1.. {
        tokio::select! {
            ended = &mut ending => return ended,
            () = interrupts.reached(times) => {
                // One that has ended by itself needs no asking.
                if let Some(id) = id {
                    kill_process(id, Signal::TERM).ok();
                }
            }
        }
    }
    ending.await
}
