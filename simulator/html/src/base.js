"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const el = (parent, tag, text, set = {}) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; Object.assign(e, set); parent.append(e); return e; };
const NS = "http://www.w3.org/2000/svg";
const draw = (parent, tag, set, text) => { const e = document.createElementNS(NS, tag); for (const k in set) e.setAttribute(k, set[k]); if (text !== undefined) e.textContent = text; parent.append(e); return e; };
const fact = (name, value, more, parent = $("facts")) => { const d = el(parent, "div"); el(d, "b", value); d.append(name); if (more) { el(d, "br"); d.append(more); } };
