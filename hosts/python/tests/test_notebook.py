"""What notebooks show of the objects, as Chromium draws it: a page with their HTML, whose script measures it."""

import json
import os
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest

import wavesim

# Copies a picture, 100 elements of a row for each workgroup.
COPY = """\
---
arg_x: f32[200,300]
out_y: f32[200,300]
local = 100, 1, 1
global = 600, 1, 1
wave = 32
---
  s_load_b128 s[4:7], s[3:4], 0
  s_mul_i32 s2, s0, 100
  v_add_nc_u32 v0, s2, v0
  v_lshlrev_b32 v0, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v1, v0, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_b32 v0, v1, s[6:7]
  s_endpgm
"""

# Runs in the page when everything is loaded, and puts what it sees where `--dump-dom` shows it.
MEASURE = """
addEventListener('load', () => {
  const seen = { images: [], frames: [] };
  for (const image of document.querySelectorAll('#result img')) {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const pen = canvas.getContext('2d');
    pen.drawImage(image, 0, 0);
    const box = image.getBoundingClientRect();
    seen.images.push({
      size: [canvas.width, canvas.height],
      shown: [box.width, box.height],
      corners: [[0, 0], [canvas.width - 1, canvas.height - 1]].map(([x, y]) => [...pen.getImageData(x, y, 1, 1).data]),
    });
  }
  for (const frame of document.querySelectorAll('iframe')) {
    const page = frame.contentDocument, box = frame.getBoundingClientRect();
    seen.frames.push({
      shown: [box.width, box.height],
      charts: page.querySelectorAll('.chart').length,
      rows: page.querySelectorAll('table tr').length,
      text: page.body.innerText,
    });
  }
  seen.debugger = document.querySelector('#debugger').innerText;
  const out = document.createElement('pre');
  out.id = 'seen';
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
"""


def chromium():
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def seen(parts, folder):
    """Returns what the page's script has measured of these parts, by id."""
    browser = chromium()
    if browser is None:
        pytest.skip("no Chromium")
    body = "".join(f"<div id='{name}'>{html}</div>" for name, html in parts.items())
    page = folder / "notebook.html"
    page.write_text(f"<!doctype html><meta charset='utf-8'>{body}<script>{MEASURE}</script>", encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,800", "--dump-dom"]
    command = [browser, *options, f"--user-data-dir={folder / 'profile'}", page.as_uri()]
    run = subprocess.run(command, capture_output=True, timeout=120, text=True)
    found = re.search(r'<pre id="seen">(.*?)</pre>', run.stdout, re.DOTALL)
    assert found, run.stdout[-2000:] + run.stderr[-2000:]
    return json.loads(unescape(found[1]))


def test_objects_draw_themselves(tmp_path):
    x = np.arange(300 * 200, dtype=np.float32).reshape(200, 300)
    x[199, 299] = np.nan
    result = wavesim.run(COPY, {"arg_x": x})
    report = wavesim.observe(COPY.replace("  s_waitcnt vmcnt(0)\n", ""), {"arg_x": x})
    session = wavesim.debug(COPY)
    session.step(3)
    page = seen(
        {
            "result": result._repr_html_(),
            "report": report._repr_html_(),
            "debugger": session._repr_html_(),
        },
        tmp_path,
    )
    # Outputs are whole: every element is a pixel, the least one dark, and a NaN red.
    (image,) = page["images"]
    assert image["size"] == [300, 200] and image["shown"] == [300, 200]
    assert image["corners"] == [[26, 60, 110, 255], [204, 51, 51, 255]]
    # The report is the page of `wavesim check --html`: findings, maps of the allocations, what happened when.
    (frame,) = page["frames"]
    assert frame["shown"][0] > 900 and frame["shown"][1] > 500
    assert frame["charts"] == 2
    for part in ("arg_x", "out_y", "Findings", "v1", "Active lanes"):
        assert part in frame["text"], part
    # Where each wave is, and its registers lane by lane.
    assert "v_lshlrev_b32" in page["debugger"] and "\tv0\t" in "\t" + page["debugger"].replace("\n", "\t")


def test_frames_of_statistics():
    report = wavesim.observe(COPY)
    pandas = pytest.importorskip("pandas")
    for frame in (report.instructions, report.timeline):
        assert isinstance(frame, pandas.DataFrame) and len(frame)
    assert report.instructions["count"].sum() == report.stats["instructions"]
    assert (report.timeline["active"] <= report.timeline["lanes"]).all()


def test_profiles_draw_themselves(tmp_path):
    result = wavesim.run(COPY, profile="rx7900xtx")
    profile = result.profile
    assert profile["schema"] == "wavesim-profile-1" and profile["device"] == "rx7900xtx" and len(profile) > 10
    low, high = profile["microseconds"]["low"], profile["microseconds"]["high"]
    assert low < profile.microseconds < high and "predicted" in profile.label
    texts = [row["instruction"] for row in profile["instructions"]]
    assert len(texts) == 9 and "global_load_b32 v1, v0, s[4:5]" in texts
    page = seen({"profile": profile._repr_html_(), "debugger": ""}, tmp_path)
    (frame,) = page["frames"]
    assert frame["rows"] == 10 and "Radeon RX 7900 XTX, not measured" in frame["text"]
    # The source is beside the assembly.
    assert "arg_x: f32[200,300]" in frame["text"]
    # The same run again has the same prediction; without a request there is none.
    assert wavesim.run(COPY, profile=True).profile.data == profile.data
    assert wavesim.run(COPY).profile is None
