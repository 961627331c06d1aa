//! Runs: results, limits, shards, and what runs again.

use crate::{campaign, folder, records, run, run_shard, script};
use std::collections::HashMap;
use wavesim_campaign::plan::Shard;
use wavesim_campaign::report;
use wavesim_campaign::store::{Record, Status, Store, StoreError};

const PLAN: &str = "
[limits]
seconds = 1.5
memory-mb = 200
[[cases]]
kernels = ['*.rdna']
seeds = '0..3'
";

/// The last argument is the kernel.
const PROGRAM: &str = "\
for last; do :; done
case \"$last\" in
*pass.rdna) exit 0 ;;
*fail.rdna) echo '{\"message\": \"a race\"}'; exit 1 ;;
*wrong.rdna) echo 'error: no such thing' >&2; exit 2 ;;
*late.rdna) sleep 60 ;;
*crash.rdna) kill -SEGV $$ ;;
*large.rdna) exec python3 -c 'x = bytearray(1 << 30)' ;;
esac
";

#[test]
fn exit_codes_and_limits_decide_the_status() {
    let folder = folder("status");
    for name in ["pass", "fail", "wrong", "late", "crash", "large"] {
        std::fs::write(folder.join(format!("{name}.rdna")), name).unwrap();
    }
    let program = script(&folder, PROGRAM);
    let campaign = campaign(&folder, &PLAN.replace("'0..3'", "[1]"));
    let progress = run(&folder, &campaign, &program);
    assert_eq!((progress.total, progress.known, progress.done, progress.failed), (6, 0, 6, 5));
    let records = records(&folder.join("results.db"));
    let by_name: HashMap<&str, &Record> =
        records.iter().map(|r| (r.name.split(['/', ' ', '.']).nth(1).unwrap(), r)).collect();
    let status = |name: &str| (by_name[name].status, by_name[name].code);
    assert_eq!(status("pass"), (Status::Passed, 0));
    assert_eq!(status("fail"), (Status::Failed, 1));
    assert_eq!(status("wrong"), (Status::Invalid, 2));
    assert_eq!(status("late").0, Status::Timeout);
    assert_eq!(status("crash"), (Status::Crashed, -11));
    // Python reports that the memory is used up; without Python, the shell that it is absent.
    assert_ne!(status("large").0, Status::Passed);
    assert!(by_name["late"].seconds < 20.0);
    assert_eq!(by_name["fail"].output, "{\"message\": \"a race\"}\n");
    assert_eq!(by_name["wrong"].messages, "error: no such thing\n");
    assert!(!folder.join("results.db-work").exists());
}

#[test]
fn results_are_not_run_again_unless_the_kernel_changes() {
    let folder = folder("again");
    for name in ["a", "b"] {
        std::fs::write(folder.join(format!("{name}.rdna")), name).unwrap();
    }
    let program = script(&folder, "exit 0\n");
    let first = campaign(&folder, PLAN);
    assert_eq!(run(&folder, &first, &program).done, 6);
    assert_eq!(run(&folder, &first, &program).done, 0);
    std::fs::write(folder.join("a.rdna"), "changed").unwrap();
    let again = run(&folder, &first, &program);
    assert_eq!((again.known, again.done), (3, 3));
    // A larger plan keeps the results of the smaller one.
    let larger = campaign(&folder, &PLAN.replace("0..3", "0..5"));
    let more = run(&folder, &larger, &program);
    assert_eq!((more.total, more.known, more.done), (10, 6, 4));
    assert_eq!(records(&folder.join("results.db")).len(), 10);
}

#[test]
fn merged_shards_are_the_whole() {
    let folder = folder("shards");
    for name in ["a", "b"] {
        std::fs::write(folder.join(format!("{name}.rdna")), name).unwrap();
    }
    // Half of the cases fail.
    let program = script(&folder, "case \"$*\" in *seed=1*) echo out; exit 1 ;; esac\n");
    let campaign = campaign(&folder, PLAN);
    run(&folder, &campaign, &program);
    for index in 1..=3 {
        let part =
            run_shard(&folder, &campaign, &program, &format!("part{index}.db"), Shard { index, count: 3 });
        assert_eq!(part.done, 2);
    }
    let mut all = Store::open(&folder.join("all.db")).unwrap();
    // The second time changes nothing.
    for index in [2, 1, 3, 3] {
        let part = Store::existing(&folder.join(format!("part{index}.db"))).unwrap();
        assert_eq!(all.merge(&part).unwrap(), 2);
    }
    let facts = |path: &str| -> Vec<(String, Status, String)> {
        records(&folder.join(path)).into_iter().map(|r| (r.name, r.status, r.output)).collect()
    };
    assert_eq!(facts("all.db"), facts("results.db"));
    assert_eq!(report::counts(&all).unwrap().of(Status::Failed), 2);
}

#[test]
fn other_files_are_not_overwritten() {
    let folder = folder("foreign");
    let path = folder.join("x.db");
    std::fs::write(&path, "a text that is not a database, and long enough to be read as one".repeat(20))
        .unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Foreign(_))));
    assert!(matches!(Store::existing(&folder.join("none.db")), Err(StoreError::Sqlite { .. })));
}
