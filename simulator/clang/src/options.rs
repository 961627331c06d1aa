//! The compiler options that programs may pass to OpenCL and `hiprtc`.
//!
//! Options of clang can load plugins, start other programs and write files, and new ones appear with every
//! release, so only the options in the tables below are accepted. Each accepted option becomes exactly one
//! argument of clang: a value that begins with `-` or `@` cannot become an option or a response file.

use std::fmt;
use std::path::Path;

/// The kernel language, which selects the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// OpenCL C: the options of the OpenCL 3.0 API specification, *Compiler Options*.
    OpenCl,
    /// HIP: the options of hiprtc.
    Hip,
}

impl Language {
    /// The language of a source file, by its extension: `cl` or `hip`.
    pub fn of_file(path: &Path) -> Option<Language> {
        match path.extension()?.to_str()? {
            "cl" => Some(Language::OpenCl),
            "hip" => Some(Language::Hip),
            _ => None,
        }
    }
}

/// The options of one compilation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Arguments of clang.
    pub arguments: Vec<String>,
    /// The processor that `--offload-arch` selects, without target features.
    pub processor: Option<String>,
    /// Whether the result is to be linked later (`-fgpu-rdc`).
    pub relocatable: bool,
}

/// The reason why options are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionError {
    /// An option that is in no table.
    Unknown(String),
    /// The value that follows the option is missing or empty.
    NoValue(String),
    /// The option does not accept this value.
    Value(String),
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Unknown(option) => write!(f, "option {option} is not supported"),
            OptionError::NoValue(option) => write!(f, "option {option} requires a value"),
            OptionError::Value(option) => write!(f, "option {option}: invalid value"),
        }
    }
}

/// Options with a macro in the same or in the next word.
const MACROS: [&str; 2] = ["-D", "-U"];
/// Options with the path of a file or a directory that is read, in the same or in the next word.
const PATHS: [&str; 5] = ["-include", "-isystem", "-idirafter", "-iquote", "-I"];

/// Options of OpenCL without a value (OpenCL 3.0 API, 5.8.6), and `-cl-` options of clang.
const OPENCL: [&str; 16] = [
    "-cl-single-precision-constant",
    "-cl-denorms-are-zero",
    "-cl-fp32-correctly-rounded-divide-sqrt",
    "-cl-opt-disable",
    "-cl-strict-aliasing",
    "-cl-uniform-work-group-size",
    "-cl-no-subgroup-ifp",
    "-cl-mad-enable",
    "-cl-no-signed-zeros",
    "-cl-no-signed-zeroes",
    "-cl-unsafe-math-optimizations",
    "-cl-finite-math-only",
    "-cl-fast-relaxed-math",
    "-cl-kernel-arg-info",
    "-cl-no-stdinc",
    "-create-library",
];

/// Options of both languages without a value.
const FLAGS: [&str; 24] = [
    "-w",
    "-pedantic",
    "-pedantic-errors",
    "-ansi",
    "-O",
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-Os",
    "-Oz",
    "-Og",
    "-Ofast",
    "-g",
    "-g0",
    "-g1",
    "-g2",
    "-g3",
    "-ggdb",
    "-gline-tables-only",
    "-gline-directives-only",
    "-gdwarf-4",
    "-gdwarf-5",
    "-gno-column-info",
];

/// `-f` options without a value, which also have a negative form (`-fno-`).
const FEATURES: [&str; 58] = [
    "access-control",
    "aligned-allocation",
    "approx-func",
    "associative-math",
    "blocks",
    "char8_t",
    "color-diagnostics",
    "caret-diagnostics",
    "common",
    "cuda-approx-transcendentals",
    "cuda-flush-denormals-to-zero",
    "cxx-exceptions",
    "data-sections",
    "declspec",
    "delete-null-pointer-checks",
    "diagnostics-color",
    "discard-value-names",
    "elide-constructors",
    "exceptions",
    "fast-math",
    "finite-math-only",
    "function-sections",
    "gpu-allow-device-init",
    "gpu-approx-transcendentals",
    "gpu-defer-diag",
    "gpu-flush-denormals-to-zero",
    "hip-fp32-correctly-rounded-divide-sqrt",
    "hip-kernel-arg-name",
    "honor-infinities",
    "honor-nans",
    "inline",
    "inline-functions",
    "inline-hint-functions",
    "jump-tables",
    "lax-vector-conversions",
    "math-errno",
    "merge-all-constants",
    "ms-extensions",
    "offload-uniform-block",
    "omit-frame-pointer",
    "operator-names",
    "optimize-sibling-calls",
    "protect-parens",
    "reciprocal-math",
    "rounding-math",
    "rtti",
    "show-column",
    "signed-char",
    "signed-zeros",
    "sized-deallocation",
    "slp-vectorize",
    "strict-aliasing",
    "strict-overflow",
    "trapping-math",
    "unroll-loops",
    "unsafe-math-optimizations",
    "vectorize",
    "wrapv",
];

/// `-f` options with a value, which is a word or a number.
const FEATURE_VALUES: [&str; 17] = [
    "bracket-depth",
    "clang-abi-compat",
    "complex-arithmetic",
    "constexpr-depth",
    "constexpr-steps",
    "denormal-fp-math",
    "denormal-fp-math-f32",
    "diagnostics-color",
    "diagnostics-format",
    "error-limit",
    "fp-contract",
    "fp-exception-behavior",
    "fp-model",
    "macro-backtrace-limit",
    "message-length",
    "template-backtrace-limit",
    "template-depth",
];

/// Options of HIP without a value, for its code generation.
const HIP: [&str; 14] = [
    "-mcumode",
    "-mno-cumode",
    "-mwavefrontsize64",
    "-mno-wavefrontsize64",
    "-mtgsplit",
    "-mno-tgsplit",
    "-munsafe-fp-atomics",
    "-mno-unsafe-fp-atomics",
    "-munaligned-access",
    "-mno-unaligned-access",
    "-fno-gpu-rdc",
    "-nostdinc",
    "-nostdinc++",
    "-nogpuinc",
];

/// Options of LLVM that libraries pass after `-mllvm`. Others can name files.
const LLVM: [&str; 9] = [
    "amdgpu-coerce-illegal-types",
    "amdgpu-early-inline-all",
    "amdgpu-function-calls",
    "amdgpu-unroll-threshold-local",
    "amdgpu-unroll-threshold-private",
    "enable-post-misched",
    "inline-threshold",
    "lsr-drop-solution",
    "unroll-threshold",
];

/// Selects the options that programs may use. `words` are separate options, or options followed by their
/// value.
///
/// # Errors
/// An option that is not in the tables, or whose value is missing or malformed.
pub fn accept(words: impl IntoIterator<Item = String>, language: Language) -> Result<Options, OptionError> {
    let mut out = Options::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        // Programs leave places of their arrays empty.
        if word.trim().is_empty() {
            continue;
        }
        // `-mllvm` and `-D` take the next word, if they have no value in the same one.
        let mut value_of = |option: &str, rest: &str| match rest.trim_start() {
            "" => words.next().filter(|v| !v.is_empty()).ok_or_else(|| OptionError::NoValue(option.into())),
            value => Ok(value.to_string()),
        };
        if let Some((option, rest)) = strip(&word, &MACROS) {
            out.arguments.push(definition(option, &value_of(option, rest)?)?);
        } else if let Some((option, rest)) = strip(&word, &PATHS) {
            let value = value_of(option, rest)?;
            // `-include` and `-pch…` would be another option, `-include-pch`, which takes the next argument.
            let here = if value.starts_with('-') { "./" } else { "" };
            out.arguments.push(format!("{option}{here}{value}"));
        } else if language == Language::Hip && (word == "-mllvm" || word.starts_with("-mllvm ")) {
            let value = value_of("-mllvm", &word["-mllvm".len()..])?;
            let setting = llvm_setting(&value).ok_or(OptionError::Unknown(format!("-mllvm {value}")))?;
            out.arguments.extend(["-mllvm".to_string(), setting]);
        } else {
            out.add(&word, language)?;
        }
    }
    Ok(out)
}

/// Selects the options in `options` of hiprtc. As in ROCm's, an option may hold its value, after a space
/// (`-I dir`); several options in one string are also accepted.
pub fn accept_strings(options: &[String], language: Language) -> Result<Options, OptionError> {
    let words = options.iter().flat_map(|option| {
        let has_value = MACROS.iter().chain(&PATHS).chain(&["-mllvm"]).any(|known| option.starts_with(known));
        let after_value_option = |option: &str| !option.starts_with('-');
        match has_value || after_value_option(option) {
            true => vec![option.clone()],
            false => option.split_whitespace().map(str::to_string).collect(),
        }
    });
    accept(words, language)
}

impl Options {
    /// Adds an option that does not take the next word.
    fn add(&mut self, word: &str, language: Language) -> Result<(), OptionError> {
        let hip = language == Language::Hip;
        if hip && let Some((_, name)) = strip(word, &["--offload-arch=", "--gpu-architecture=", "-arch="]) {
            // Target features such as `:xnack-` are dropped: they match the defaults.
            let processor = name.split(':').next().unwrap_or(name);
            if !processor.starts_with("gfx")
                || !processor.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            {
                return Err(OptionError::Value(word.into()));
            }
            self.processor = Some(processor.to_string());
            return Ok(());
        }
        match word {
            "-fgpu-rdc" if hip => {
                self.relocatable = true;
                return Ok(());
            }
            // Only select precompiled headers, or something that is the case here anyway.
            "-hip-pch" | "-default-device" if hip => return Ok(()),
            // Only permits optimisations that are not made; clang does not have the option.
            "-cl-no-subgroup-ifp" | "-cl-strict-aliasing" if !hip => return Ok(()),
            _ => {}
        }
        match is_known(word, language) {
            Known::Yes => self.arguments.push(word.to_string()),
            Known::No => return Err(OptionError::Unknown(word.into())),
            Known::Value => return Err(OptionError::Value(word.into())),
        }
        Ok(())
    }
}

/// Whether a table has an option.
enum Known {
    Yes,
    No,
    /// The option is known, but not with this value.
    Value,
}

fn is_known(word: &str, language: Language) -> Known {
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    let of_language: &[&str] = if language == Language::Hip { &HIP } else { &OPENCL };
    let Some(value) = value else {
        let feature = name.strip_prefix("-f").map(|rest| rest.strip_prefix("no-").unwrap_or(rest));
        let known = FLAGS.contains(&name)
            || of_language.contains(&name)
            || feature.is_some_and(|feature| FEATURES.contains(&feature))
            // `-Wl,`, `-Wa,` and `-Wp,` pass options to other programs; warnings have no commas.
            || name.strip_prefix("-W").is_some_and(|warning| is_simple(warning, "+-_"));
        return if known { Known::Yes } else { Known::No };
    };
    let numeric = |value: &str| !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    let fits = match name {
        "-std" | "--std" if language == Language::Hip => is_simple(value, "+") && !value.is_empty(),
        "-cl-std" if language == Language::OpenCl => is_simple(value, "+.") && !value.is_empty(),
        "-cl-ext" if language == Language::OpenCl => is_simple(value, "+-_,"),
        "-mcode-object-version" | "--gpu-max-threads-per-block" if language == Language::Hip => {
            numeric(value)
        }
        "-fgpu-default-stream" if language == Language::Hip => is_simple(value, "-"),
        _ if name.strip_prefix("-f").is_some_and(|feature| FEATURE_VALUES.contains(&feature)) => {
            is_simple(value, "-,.")
        }
        // `-Wframe-larger-than=100`
        _ if name.starts_with("-W") => is_simple(&name[2..], "+-_") && is_simple(value, "+-_"),
        _ => return Known::No,
    };
    if fits { Known::Yes } else { Known::Value }
}

/// Returns true if a value consists of letters, digits and `others`, so that it is not a path.
fn is_simple(value: &str, others: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

/// Splits a word into one of `options` and the rest.
fn strip<'a, 'o>(word: &'a str, options: &'o [&'o str]) -> Option<(&'o str, &'a str)> {
    options.iter().find_map(|option| Some((*option, word.strip_prefix(option)?)))
}

/// Returns the argument that defines a macro: `NAME`, `NAME=TEXT` or `NAME(PARAMETERS)=TEXT`.
fn definition(option: &str, value: &str) -> Result<String, OptionError> {
    let starts = value.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
    match starts && !value.contains(['\n', '\r']) {
        true => Ok(format!("{option}{value}")),
        false => Err(OptionError::Value(format!("{option} {value}"))),
    }
}

/// Returns an option of LLVM as clang's argument after `-mllvm`.
fn llvm_setting(text: &str) -> Option<String> {
    let name = text.trim_start_matches('-');
    let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
    let fits = value.is_none_or(|value| !value.is_empty() && is_simple(value, ""));
    let setting = value.map_or(name.to_string(), |value| format!("{name}={value}"));
    (LLVM.contains(&name) && fits).then(|| format!("-{setting}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_string).collect()
    }

    const BOTH: [Language; 2] = [Language::OpenCl, Language::Hip];

    #[test]
    fn options_that_run_code_or_write_files_are_refused_by_name() {
        let list = "-fpass-plugin=/tmp/x.so -fplugin=/tmp/x.so -fplugin-arg-a-b -ftime-trace -ftime-trace=/tmp/x \
             -Wl,-o,/tmp/x -Wp,-MD,/tmp/x -Wa,-o -foptimization-record-file=/tmp/x -fsave-optimization-record -o \
             -o/tmp/x @/tmp/options -B/tmp -Xclang -Xlinker -Xarch_device -Xassembler -Xpreprocessor -Xcuda-ptxas \
             -MD -MF/tmp/x -MJ/tmp/x -save-temps -save-temps=obj --save-temps -dump -dD -gsplit-dwarf -fuse-ld=/tmp/x \
             --config=/tmp/x -specs=/tmp/x -x -c -S -E -emit-llvm -fmodules -fmodules-cache-path=/tmp \
             -fmodule-output=/tmp/x -fprofile-generate=/tmp -fprofile-instr-generate=/tmp/x --serialize-diagnostics \
             -fdebug-prefix-map=a=b -fcrash-diagnostics-dir=/tmp -fdump-record-layouts -fstack-usage \
             -fproc-stat-report=/tmp/x -fno-integrated-as -fno-integrated-cc1 -ccc-install-dir --sysroot=/tmp \
             -resource-dir=/tmp --gcc-toolchain=/tmp -rpath -L/tmp -l/tmp/x -T/tmp/x -working-directory=/tmp \
             --rocm-path=/tmp -index-store-path -fmemory-profile=/tmp -fcs-profile-generate=/tmp -ivfsoverlay \
             -Rpass=. -mllvm=x -fembed-bitcode -print-stats file.c /tmp/x - --output=/tmp/x -fno-pass-plugin";
        for option in list.split_whitespace() {
            for language in BOTH {
                let error = accept(words(option), language).unwrap_err();
                assert_eq!(error, OptionError::Unknown(option.to_string()), "{language:?}");
                assert_eq!(error.to_string(), format!("option {option} is not supported"));
                accept_strings(&[format!("-O2 {option}")], language).unwrap_err();
            }
        }
        for option in
            ["-mllvm -stats", "-mllvm -info-output-file=x", "-mllvm -load=/x.so", "-mllvm", "-D", "-I"]
        {
            assert!(accept(words(option), Language::Hip).is_err(), "{option}");
        }
        for option in ["-ffp-model=/x", "-std=../x", "-Wa=/x", "--offload-arch=gfx/../x", "--offload-arch=@x"]
        {
            assert!(accept(words(option), Language::Hip).is_err(), "{option}");
        }
    }

    #[test]
    fn values_do_not_become_arguments() {
        let list = [
            "-D",
            "A=@/tmp/x",
            "-I",
            "@/tmp/x",
            "-I",
            "-o",
            "-include",
            "@f",
            "-DB=-o x",
            "-include-pch",
            "-isystem-after",
            "-I-",
        ];
        for language in BOTH {
            let accepted = accept(list.map(str::to_string), language).unwrap();
            assert_eq!(
                accepted.arguments[..5],
                ["-DA=@/tmp/x", "-I@/tmp/x", "-I./-o", "-include@f", "-DB=-o x"]
            );
            // Other options of clang, some of which take the next argument.
            assert_eq!(accepted.arguments[5..], ["-include./-pch", "-isystem./-after", "-I./-"]);
            assert!(accepted.arguments.iter().all(|a| a.starts_with('-') && a != "-o"));
            // Clang would take the next argument for the value of an empty one.
            for wrong in [["-D", ""], ["-I", ""], ["-D", "-o"], ["-D", "@x"], ["-D", "A=1\n#include \"x\""]] {
                assert!(accept(wrong.map(str::to_string), language).is_err(), "{wrong:?}");
            }
        }
        let strings = ["-I dir with space", "-DA=x y", "-O3 -g", "-D", "B=1 2", "-mllvm -inline-threshold=5"];
        let accepted = accept_strings(&strings.map(str::to_string), Language::Hip).unwrap();
        let expected =
            ["-Idir with space", "-DA=x y", "-O3", "-g", "-DB=1 2", "-mllvm", "-inline-threshold=5"];
        assert_eq!(accepted.arguments, expected);
    }

    #[test]
    fn options_of_the_standard_and_of_real_programs_are_accepted() {
        let opencl = "-D A -DB=1 -U C -I dir -cl-std=CL3.0 -cl-std=CLC++2021 -cl-mad-enable -cl-fast-relaxed-math \
             -cl-kernel-arg-info -cl-uniform-work-group-size -cl-opt-disable -w -Werror -Wall -Wno-unused \
             -Wframe-larger-than=100 -g -O3 -ffast-math -fno-fast-math -ffp-contract=off -fno-math-errno \
             -fdenormal-fp-math=preserve-sign,preserve-sign -cl-denorms-are-zero -cl-ext=+cl_khr_fp64,-all";
        let accepted = accept(words(opencl), Language::OpenCl).unwrap();
        assert_eq!(accepted.arguments.len(), words(opencl).len() - 3);
        let ignored = accept(words("-cl-no-subgroup-ifp -cl-strict-aliasing"), Language::OpenCl).unwrap();
        assert_eq!(ignored, Options::default());

        let hip = "--offload-arch=gfx942:sramecc+:xnack- -std=c++17 --std=c++20 -O3 -hip-pch -mcumode -fno-gpu-rdc \
             -munsafe-fp-atomics -mllvm -amdgpu-early-inline-all=true -mllvm --lsr-drop-solution=1 -Weverything \
             -fno-offload-uniform-block -ftemplate-backtrace-limit=0 -mcode-object-version=5 \
             --gpu-max-threads-per-block=256 -fgpu-rdc -isystem dir -include hip/hip_fp16.h";
        let accepted = accept(words(hip), Language::Hip).unwrap();
        assert_eq!((accepted.processor.as_deref(), accepted.relocatable), (Some("gfx942"), true));
        assert!(accepted.arguments.contains(&"-includehip/hip_fp16.h".to_string()));
        // Options of the other language.
        assert!(accept(words("-mcode-object-version=4"), Language::OpenCl).is_err());
        assert!(accept(words("-cl-mad-enable"), Language::Hip).is_err());
    }
}
