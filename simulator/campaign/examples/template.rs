//! A program for the tests of templates (`tests/all/templates.rs`): what `wavesim` is for campaigns.

#[cfg(unix)]
mod unix {
    use rustix::process::{Signal, getpid, getppid, kill_process};
    use std::io::Write as _;
    use std::path::Path;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;
    use wavesim_campaign::process::TEMPLATE;
    use wavesim_campaign::template;

    /// Whether this is a template, or a case of one.
    static IS_TEMPLATE: AtomicBool = AtomicBool::new(false);

    pub fn main() -> u8 {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if arguments != [TEMPLATE] {
            return case(arguments);
        }
        IS_TEMPLATE.store(true, Ordering::Relaxed);
        template::serve(|_| (), |arguments, ()| case(arguments)).map_or(2, |()| 0)
    }

    /// Runs a case: the last argument is the kernel, whose name says what happens; for other names, the seed does.
    #[expect(clippy::zombie_processes, reason = "the process that is not waited for is what a test is about")]
    fn case(arguments: Vec<String>) -> u8 {
        let kernel = Path::new(arguments.last().unwrap());
        match kernel.file_stem().unwrap().to_str().unwrap() {
            "pass" => 0,
            "fail" => {
                println!("{{\"message\": \"a race\"}}");
                1
            }
            "wrong" => {
                eprintln!("error: no such thing");
                2
            }
            "late" => {
                std::thread::sleep(Duration::from_secs(60));
                0
            }
            "crash" => {
                kill_process(getpid(), Signal::ILL).unwrap();
                0
            }
            "panic" => panic!("at the disco"),
            "large" => u8::from(std::hint::black_box(vec![1u8; 1 << 30])[5] == 0),
            "loud" => {
                std::io::stdout().write_all(&vec![b'x'; 3 << 20]).unwrap();
                1
            }
            // Its child holds the pipes of the outputs, and does not end.
            "parent" => {
                Command::new("sleep").arg("60").spawn().unwrap();
                1
            }
            "lost" => {
                kill_template(&kernel.with_extension("killed"));
                1
            }
            // No template survives this one.
            "deadly" if IS_TEMPLATE.load(Ordering::Relaxed) => {
                kill_process(getppid().unwrap(), Signal::KILL).unwrap();
                std::thread::sleep(Duration::from_secs(60));
                0
            }
            "deadly" => 1,
            _ => by_seed(&arguments, kernel),
        }
    }

    fn by_seed(arguments: &[String], kernel: &Path) -> u8 {
        let seed = arguments.iter().find_map(|argument| argument.strip_prefix("--seed=")).unwrap();
        let number: u64 = seed.parse().unwrap();
        if number.is_multiple_of(8) && kernel.with_file_name("killing").exists() {
            kill_template(&kernel.with_file_name(format!("{seed}.killed")));
        }
        match number % 10 {
            0 | 5 => {
                println!("{}", arguments.join(" "));
                1
            }
            7 => 2,
            _ => 0,
        }
    }

    /// Kills the template of this case, and waits to be killed, too; unless the file exists.
    fn kill_template(marker: &Path) {
        if std::fs::File::create_new(marker).is_ok() {
            println!("this is not in the result");
            kill_process(getppid().unwrap(), Signal::KILL).unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
    }
}

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    unix::main().into()
}

#[cfg(not(unix))]
fn main() {}
