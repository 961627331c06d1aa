//! A campaign that is killed at any time loses no result that it has written, and counts none twice.

use crate::{campaign, folder, records, run, script};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wavesim_campaign::store::{Status, Store};

const PLAN: &str = "keep = 'all'\n[[cases]]\nkernels = ['k.rdna']\nseeds = '0..400'\n";

/// The exit code depends on the seed.
const PROGRAM: &str = "case \"$*\" in *[05]\\ --*) echo \"$*\"; exit 1 ;; *7\\ --*) exit 2 ;; esac\n";

/// The folder of the campaign that the process of [`child`] runs.
const FOLDER: &str = "WAVESIM_TEST_CAMPAIGN";

/// The process that [`killed_campaigns_continue`] kills; on its own, it does nothing.
#[test]
fn child() {
    if let Ok(path) = std::env::var(FOLDER) {
        let folder = Path::new(&path);
        run(folder, &campaign(folder, PLAN), &folder.join("program"));
    }
}

/// `WAVESIM_KILLS` is the number of kills, 15 by default.
#[test]
fn killed_campaigns_continue() {
    let folder = folder("kill");
    std::fs::write(folder.join("k.rdna"), "x").unwrap();
    script(&folder, PROGRAM);
    let kills: u64 = std::env::var("WAVESIM_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(15);
    let database = folder.join("results.db");
    let mut before: BTreeMap<String, (Status, String)> = BTreeMap::new();
    let (mut random, mut done) = (0x9e37_79b9_7f4a_7c15u64, 0);
    while done < kills {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child"])
            .env(FOLDER, &folder)
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
        }
    }
    run(&folder, &campaign(&folder, PLAN), &folder.join("program"));
    let after: Vec<Status> = records(&database).iter().map(|r| r.status).collect();
    let count = |wanted| after.iter().filter(|status| **status == wanted).count();
    assert_eq!((after.len(), count(Status::Failed), count(Status::Invalid)), (400, 80, 40));
}
