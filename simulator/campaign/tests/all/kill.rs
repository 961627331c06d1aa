//! A campaign that is killed at any time loses no result that it has written, and counts none twice.

use crate::{campaign, folder, records, run, script, templates};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wavesim_campaign::process::Program;
use wavesim_campaign::store::{Status, Store};

const PLAN: &str = "keep = 'all'\n[[cases]]\nkernels = ['k.rdna']\nseeds = '0..400'\n";

/// The exit code depends on the seed.
const PROGRAM: &str = "case \"$*\" in *[05]\\ --*) echo \"$*\"; exit 1 ;; *7\\ --*) exit 2 ;; esac\n";

/// The folder of the campaign that the processes of [`child`] and [`child_with_templates`] run.
const FOLDER: &str = "WAVESIM_TEST_CAMPAIGN";

/// The process that [`killed_campaigns_continue`] kills; on its own, it does nothing.
#[test]
fn child() {
    if let Ok(path) = std::env::var(FOLDER) {
        let folder = Path::new(&path);
        run(folder, &campaign(folder, PLAN), &script(folder, PROGRAM));
    }
}

/// The process that [`killed_campaigns_with_templates_continue`] kills; on its own, it does nothing.
#[test]
fn child_with_templates() {
    if let Ok(path) = std::env::var(FOLDER) {
        let folder = Path::new(&path);
        run(folder, &campaign(folder, PLAN), &templates::program());
    }
}

#[test]
fn killed_campaigns_continue() {
    let folder = folder("kill");
    kill(&folder, "kill::child", &script(&folder, PROGRAM), || {});
}

/// Each case whose seed is a multiple of eight kills its template when it runs for the first time.
#[test]
fn killed_campaigns_with_templates_continue() {
    let folder = folder("kill-templates");
    std::fs::write(folder.join(templates::KILLING), "").unwrap();
    let marked = || std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let marked = || marked().filter(|path| path.extension().is_some_and(|e| e == templates::MARKER));
    let mut killed = 0;
    kill(&folder, "kill::child_with_templates", &templates::program(), || {
        killed += marked().count();
        marked().for_each(|path| std::fs::remove_file(path).unwrap());
    });
    killed += marked().count();
    assert!(killed >= 50, "{killed} templates have been killed");
}

/// Kills the process of a test, which runs a campaign, at random times. `WAVESIM_KILLS` is the number of kills, 15 by
/// default. Calls `again` when the campaign begins again after all results were there.
fn kill(folder: &Path, child: &str, program: &Program, mut again: impl FnMut()) {
    std::fs::write(folder.join("k.rdna"), "x").unwrap();
    let kills: u64 = std::env::var("WAVESIM_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(15);
    let database = folder.join("results.db");
    let mut before: BTreeMap<String, (Status, String)> = BTreeMap::new();
    let (mut random, mut done) = (0x9e37_79b9_7f4a_7c15u64, 0);
    while done < kills {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", child])
            .env(FOLDER, folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        std::thread::sleep(Duration::from_micros(20_000 + (random >> 33) % 120_000));
        process.kill().unwrap();
        process.wait().unwrap();
        done += 1;
        // The database opens, and has everything that it had.
        if !database.exists() {
            continue;
        }
        let now: BTreeMap<String, (Status, String)> = match Store::open(&database) {
            Ok(_) => records(&database).into_iter().map(|r| (r.name, (r.status, r.output))).collect(),
            Err(e) => panic!("after {done} kills: {e}"),
        };
        assert!(before.iter().all(|(name, result)| now.get(name) == Some(result)), "after {done} kills");
        before = now;
        // All have run: from the beginning, so that kills hit running campaigns.
        if before.len() == 400 {
            std::fs::remove_file(&database).unwrap();
            for end in ["-wal", "-shm"] {
                let _ = std::fs::remove_file(folder.join(format!("results.db{end}")));
            }
            before.clear();
            again();
        }
    }
    run(folder, &campaign(folder, PLAN), program);
    let after: Vec<Status> = records(&database).iter().map(|r| r.status).collect();
    let count = |wanted| after.iter().filter(|status| **status == wanted).count();
    assert_eq!((after.len(), count(Status::Failed), count(Status::Invalid)), (400, 80, 40));
}
