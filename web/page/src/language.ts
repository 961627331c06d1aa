// Syntax highlighting of kernels (text kernels and LLVM assembly) and of pseudocode.

import { StreamLanguage, type StreamParser, LanguageSupport } from "@codemirror/language";

const REGISTER =
  /^(?:[vs]\d+\b|[vs]\[[^\]\s]*\]|(?:vcc|exec|flat_scratch|xnack_mask)(?:_lo|_hi)?\b|m0\b|scc\b|null\b|off\b|ttmp(?:\d+\b|\[[^\]\s]*\])|src_\w+)/i;
const NUMBER = /^-?(?:0x[0-9a-f]+|0b[01]+|\d+(?:\.\d*)?(?:e[+-]?\d+)?)\b/i;

interface KernelState {
  header: boolean;
  start: boolean;
  comment: boolean;
}

/** Instruction names have a style of their own. */
export function kernelLanguage(isInstruction: (word: string) => boolean): LanguageSupport {
  const parser: StreamParser<KernelState> = {
    name: "rdna",
    startState: () => ({ header: false, start: true, comment: false }),
    token(stream, state) {
      if (stream.sol()) {
        state.start = true;
        if (stream.match(/^---\s*$/)) {
          state.header = !state.header;
          return "meta";
        }
      }
      if (state.comment) {
        state.comment = !stream.match(/^.*?\*\//);
        if (state.comment) stream.skipToEnd();
        return "comment";
      }
      if (stream.eatSpace()) return null;
      if (stream.match("/*")) {
        state.comment = !stream.match(/^.*?\*\//);
        if (state.comment) stream.skipToEnd();
        return "comment";
      }
      if (stream.match(/^(?:;|\/\/).*/)) return "comment";
      if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
      if (state.start) {
        state.start = false;
        if (stream.match(/^[\w.$@]+:/)) return state.header ? "propertyName" : "labelName";
        if (stream.match(/^\.\w+/)) return "meta";
        if (state.header) {
          if (stream.match(/^(?:const|arch|wave|local|global|lds|scratch|abi)\b/)) return "keyword";
          if (stream.match(/^\w+/)) return "propertyName";
        }
        const word = stream.match(/^\w+/) as RegExpMatchArray | null;
        if (word) {
          if (word[0].toLowerCase() === "print") return "meta";
          return isInstruction(word[0]) ? "keyword" : "name";
        }
      }
      if (stream.match(REGISTER)) return "variableName";
      if (stream.match(NUMBER)) return "number";
      if (stream.match(/^(?:[uif]\d+|bf16)\b/)) return "typeName";
      if (stream.match(/^\w+(?=:)/)) return "propertyName";
      // The second half of a dual instruction.
      if (stream.match(/^::/)) {
        state.start = true;
        return "operator";
      }
      if (stream.match(/^[\w.$@]+/)) return "name";
      stream.next();
      return "operator";
    },
    languageData: { commentTokens: { line: ";" } },
  };
  return new LanguageSupport(StreamLanguage.define(parser));
}

const C_WORDS =
  /^(?:if|else|for|while|do|switch|case|default|break|continue|return|goto|struct|union|enum|typedef|static|const|volatile|restrict|inline|extern|sizeof|kernel|__kernel|global|__global|local|__local|constant|__constant|private|__private|__global__|__device__|__shared__|__host__|__restrict__|__launch_bounds__|__attribute__|template|typename|class|public|using|namespace|auto|constexpr|nullptr|true|false|operator|new|delete)\b/;
const C_TYPES =
  /^(?:void|bool|char|short|int|long|float|double|half|signed|unsigned|size_t|ptrdiff_t|u?int(?:8|16|32|64)_t|(?:u?char|u?short|u?int|u?long|float|double|half)(?:2|3|4|8|16)|uchar|ushort|uint|ulong|dim3)\b/;

/** OpenCL C and HIP. */
export function sourceLanguage(): LanguageSupport {
  const parser: StreamParser<{ comment: boolean }> = {
    name: "source",
    startState: () => ({ comment: false }),
    token(stream, state) {
      if (!state.comment && stream.eatSpace()) return null;
      if (state.comment || stream.match("/*")) {
        state.comment = !stream.match(/^.*?\*\//);
        if (state.comment) stream.skipToEnd();
        return "comment";
      }
      if (stream.match(/^\/\/.*/)) return "comment";
      if (stream.match(/^#\s*\w+/)) return "meta";
      if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'(?:[^'\\]|\\.)*'?/)) return "string";
      if (stream.match(C_TYPES)) return "typeName";
      if (stream.match(C_WORDS)) return "keyword";
      if (stream.match(/^(?:0x[0-9a-f]+|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)[ulfh]*\b/i)) return "number";
      if (stream.match(/^\w+(?=\s*\()/)) return "labelName";
      if (stream.match(/^\w+/)) return "name";
      stream.next();
      return "operator";
    },
    languageData: { commentTokens: { line: "//" } },
  };
  return new LanguageSupport(StreamLanguage.define(parser));
}

const PCODE_WORDS =
  /^(?:instruction|for|if|elsif|else|endif|then|while|do|endwhile|endfor|in|declare|return|function|endfunction|record|template|eval)\b/;

/** Pseudocode in the notation of the ISA manuals. */
export function pcodeLanguage(): LanguageSupport {
  const parser: StreamParser<object> = {
    name: "pcode",
    startState: () => ({}),
    token(stream) {
      if (stream.eatSpace()) return null;
      if (stream.match(/^\/\/.*/)) return "comment";
      if (stream.match(/^'[^']*'?/)) return "string";
      if (stream.match(PCODE_WORDS)) return "keyword";
      if (
        stream.match(
          /^(?:D\d?|S\d|VCC|EXEC|SCC|PC|M0|VADDR|SADDR|SOFFSET|DATA\d?|OFFSET|laneId|MEM|LDS|SGPR|VGPR|tmp)\b/,
        )
      )
        return "variableName";
      if (stream.match(/^\.(?:[uifb]|bf)\d+/)) return "typeName";
      if (stream.match(/^\d+'[\w.]+/) || stream.match(/^(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)[ULF]*\b/i))
        return "number";
      if (stream.match(/^\w+(?=\s*\()/)) return "labelName";
      if (stream.match(/^\w+/)) return "name";
      stream.next();
      return "operator";
    },
    languageData: { commentTokens: { line: "//" } },
  };
  return new LanguageSupport(StreamLanguage.define(parser));
}
