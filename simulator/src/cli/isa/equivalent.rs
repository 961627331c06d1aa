//! `wavesim isa equivalent`: instructions that compute what another one computes.

use crate::cli::target::{Target, WaveSize};
use serde_json::json;
use std::io::Write;
use std::time::Duration;
use wavesim_asm::describe;
use wavesim_loader::abi;
use wavesim_prove::{Equivalent, Found, Search, Setup, Solver, TESTED};

/// `wavesim isa equivalent`
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim isa equivalent v_xor_b32
  wavesim isa equivalent v_lshl_add_u32 --pairs

An SMT solver has to be installed: bitwuzla, z3 or cvc5. Exit codes: 0 some are found; 1 none; 2 bad usage.")]
pub struct EquivalentArgs {
    /// The instruction, as for `show`
    pub name: String,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub wave: WaveSize,
    /// Pairs of instructions, too, of which the second reads the result of the first
    #[arg(long)]
    pub pairs: bool,
    /// Seconds for the search for pairs, and for each question to the solver
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub timeout: u64,
    /// At most so many instructions, and so many pairs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10000))]
    pub limit: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &EquivalentArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let arch = args.target.arch_or_default();
    let (_, instruction) = describe::find(&[arch], &args.name).map_err(anyhow::Error::msg)?[0];
    let wave = args.wave.wave.unwrap_or(arch.wave_sizes()[0]);
    let time = Duration::from_secs(args.timeout);
    let search = Search {
        setup: Setup { mode: abi::default_mode(arch), ..Setup::new(arch, wave) },
        solver: Solver::find(time)?,
        pairs: args.pairs,
        time,
        limit: args.limit as usize,
    };
    answer(&search.run(instruction)?, args.timeout, args.json, out)
}

/// Prints what a search has found. The exit code is 1 if that is nothing.
pub fn answer(found: &Found, timeout: u64, json: bool, out: &mut dyn Write) -> anyhow::Result<u8> {
    if json {
        writeln!(out, "{}", to_json(found))?;
    } else {
        report(found, timeout, out)?;
    }
    Ok(if found.equivalent.is_empty() { crate::cli::FAILED } else { crate::cli::OK })
}

fn report(found: &Found, timeout: u64, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "{}", found.instruction)?;
    for Equivalent { instructions, also_writes, proof } in &found.equivalent {
        let mut line = format!("  = {}", instructions.join("; "));
        if !also_writes.is_empty() {
            line += &format!("  (writes {}, too)", also_writes.join(", "));
        }
        if let Err(why) = proof {
            line += &format!("  (in {TESTED} tests, not proven: {why})");
        }
        writeln!(out, "{line}")?;
    }
    let proven = found.equivalent.iter().filter(|one| one.proof.is_ok()).count();
    writeln!(out, "{} instructions were compared; {proven} proven", found.candidates)?;
    if found.more {
        writeln!(out, "there are more (--limit)")?;
    }
    if found.out_of_time {
        writeln!(out, "the search for pairs ended after {timeout} s (--timeout)")?;
    }
    Ok(())
}

fn to_json(found: &Found) -> serde_json::Value {
    let list: Vec<serde_json::Value> = found
        .equivalent
        .iter()
        .map(|one| {
            json!({
                "instructions": one.instructions,
                "also_writes": one.also_writes,
                "proven": one.proof.is_ok(),
                "reason": one.proof.as_ref().err(),
            })
        })
        .collect();
    json!({
        "instruction": found.instruction,
        "equivalent": list,
        "candidates": found.candidates,
        "refuted": found.refuted,
        "complete": !found.more && !found.out_of_time,
    })
}
