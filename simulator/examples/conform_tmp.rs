use std::collections::BTreeMap;
use wavesim::conform::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let engine = if args[1] == "ref" { Engine::Reference } else { Engine::Interpreter };
    let mut fails: BTreeMap<String, (u32, u32, String)> = BTreeMap::new();
    let (mut p, mut f, mut u) = (0, 0, 0);
    for path in &args[2..] {
        for r in read_file(path.as_ref()).unwrap() {
            let Some(arch) = r.architecture() else { continue };
            let key = format!("{} {} {}", r.arch, r.enc, r.op);
            match run(&r, arch, engine, &BTreeMap::new()) {
                Outcome::Passed => {
                    p += 1;
                    fails.entry(key).or_default().0 += 1;
                }
                Outcome::Failed(d) => {
                    f += 1;
                    let e = fails.entry(key).or_default();
                    e.1 += 1;
                    if e.2.is_empty() {
                        e.2 = format!(
                            "{} [{}] {}",
                            r.id,
                            r.asm.unwrap_or_default(),
                            d.join("; ").chars().take(200).collect::<String>()
                        );
                    }
                }
                Outcome::Unsupported(_) => {
                    u += 1;
                    let e = fails.entry(key).or_default();
                    e.1 += 1;
                    e.2 = "unsupported".into();
                }
            }
        }
    }
    for (k, (ok, bad, why)) in &fails {
        if *bad > 0 {
            println!("{k}: {bad} of {} fail: {why}", ok + bad);
        }
    }
    println!("{p} passed, {f} failed, {u} unsupported");
}
