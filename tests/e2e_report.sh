#!/bin/bash
# The report in a real browser: at 1280 and at 390 pixels, in the light and in the dark theme, it loads nothing, says nothing on the
# console, is never wider than the page, draws its timeline, and its button, its keys and its table headings work.
. "$top_srcdir/tests/e2e/lib.sh"

browser=
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v "$name" || true)
done
[ -n "$browser" ] || skip_all "no chromium here: the report is not tested in a browser (Debian: apt-get install chromium)"
has gnuplot || skip_all "no gnuplot here: there are no figures to put into a report"

small=$top_srcdir/tests/e2e/small.yaml

# ---- Two pages: of three runs, a figure and a validation table; and of one figure alone ----
for scheme in full partial smartgen; do
    must "run, $scheme" 0 sim "$small" --engine native --set scheme=$scheme --timeline -o "$work/page/sim-$scheme"
done
cat >"$work/page/validation.csv" <<'END'
id,row,quantity,condition,relation,paper,ours,error_percent,label,maximum,reason
A1,a,first,at first,=,3,30,900,predicted,,far too much to be read in one line of a narrow page or so it seems
A2,b,second,then,=,2,2,0,calibrated,,
A3,c,third,at last,,,1,,predicted,,
END
must "page" 0 figures fig02 -o "$work/page"
must "bare page" 0 figures fig02 -o "$work/bare"
cp -r "$work/page" "$work/page-again"
must "page once more" 0 figures fig02 -o "$work/page-again"
same "the same folder gives the same page" "$work/page/report.html" "$work/page-again/report.html"
ok "three runs, one figure: the page is the same when it is made again"

# ---- What is written in it ----
for page in page bare; do
    found=$(grep -oE "(https?:)?//[a-zA-Z][^\"' )<]*" "$work/$page/report.html" | grep -vxE 'http://www\.w3\.org/(2000/svg|1999/xlink)' | grep '^http' || true)
    [ -z "$found" ] || fail "$page: addresses in the page: $found"
    for what in 'src=' '<link' '@import' 'url('; do
        ! grep -qF -- "$what" "$work/$page/report.html" || fail "$page: '$what' is in the page"
    done
done
ok "nothing in the page is to be loaded from elsewhere"

# ---- What a browser makes of it ----
# Added to a copy of the page: tells the page around it what is there after it was used.
cat >"$work/probe.html" <<'END'
<script>
addEventListener("load", function () {
  const told = {}, root = document.documentElement, button = document.getElementById("theme");
  const ground = function () { return getComputedStyle(document.body).backgroundColor; };
  told.width = innerWidth;
  told.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  told.loaded = performance.getEntriesByType("resource").length;
  told.overflow = root.scrollWidth > innerWidth;
  told.grounds = [ground()];
  for (let i = 0; i < 3; i++) { button.click(); told.grounds.push(ground()); }
  const chart = document.querySelector(".chart"), paths = function () { return chart.querySelectorAll("path").length; };
  if (chart) {
    told.paths = paths();
    const whole = chart.innerHTML, picker = document.getElementById("timeline-run");
    for (let i = 0; i < 2; i++) chart.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
    told.detail = document.querySelector(".detail").textContent;
    chart.dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
    told.zoomed = chart.innerHTML !== whole && paths() > 0;
    told.runs = picker.options.length;
    picker.value = "0";
    picker.dispatchEvent(new Event("change"));
    told.picked = document.querySelector("#timeline-view p").textContent;
  }
  const ours = Array.from(document.querySelectorAll("table.sortable th button")).find(function (b) { return b.textContent === "ours"; });
  if (ours) { ours.click(); told.first = document.querySelector("table.sortable tbody tr").cells[0].textContent; }
  told.figure = Array.from(document.querySelectorAll("figure div")).filter(function (d) { return d.getClientRects().length; }).map(function (d) { return d.className; }).join();
  told.overflow = told.overflow || root.scrollWidth > innerWidth;
  parent.postMessage(JSON.stringify(told), "*");
});
</script>
END
for page in page bare; do
    cat "$work/$page/report.html" "$work/probe.html" >"$work/$page.html"
done
cat >"$work/around.html" <<'END'
<!DOCTYPE html><pre id="told"></pre>
<script>
addEventListener("message", function (event) { document.getElementById("told").append(event.data + "\n"); });
</script>
<iframe src="page.html" style="width:1280px;height:900px;border:0"></iframe>
<iframe src="page.html" style="width:390px;height:800px;border:0"></iframe>
<iframe src="bare.html" style="width:391px;height:800px;border:0"></iframe>
END

# told WIDTH: what the page of that width said, in $told.
told() {
    told=$(grep -F "\"width\":$1," "$work/dom" || true)
    [ -n "$told" ] || fail "$theme, $1 pixels: the page said nothing" "$work/dom" "$work/browser"
}

# expect WHAT TEXT: it is in $told.
expect() {
    case $told in *"$2"*) ;; *) fail "$theme: $1: $told" ;; esac
}

for theme in light dark; do
    flags=()
    [ $theme = light ] || flags=(--force-dark-mode)
    rc=0
    # The browser's own window cannot be 390 pixels wide; a frame in it can.
    HOME=$work XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache timeout 60 "$browser" --headless=new --no-sandbox --disable-gpu \
        --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-extensions \
        --disable-dev-shm-usage --host-resolver-rules="MAP * ~NOTFOUND" --user-data-dir="$work/profile-$theme" --window-size=1400,1000 \
        --virtual-time-budget=10000 --enable-logging=stderr "${flags[@]}" --dump-dom "file://$work/around.html" >"$work/dom" 2>"$work/browser" ||
        rc=$?
    [ "$rc" -eq 0 ] || fail "$theme: the browser ended with status $rc" "$work/browser"
    ! grep -q CONSOLE "$work/browser" || fail "$theme: on the console: $(grep CONSOLE "$work/browser")"
    light='rgb(255, 255, 255)' night='rgb(20, 23, 27)' own=$light dark=false
    [ $theme = light ] || own=$night dark=true
    for width in 1280 390 391; do
        told $width
        expect "$width pixels: the theme of the system" "\"dark\":$dark"
        expect "$width pixels: something was loaded" '"loaded":0'
        expect "$width pixels: wider than the page" '"overflow":false'
        expect "$width pixels: the button goes from the system's theme to light, dark, and back" \
            "\"grounds\":[\"$own\",\"$light\",\"$night\",\"$own\"]"
        case $width in 1280) figure=wide ;; *) figure=narrow ;; esac
        expect "$width pixels: the figure for this width" "\"figure\":\"$figure\""
        [ $width != 391 ] || continue
        expect "$width pixels: three runs to choose from" '"runs":3'
        expect "$width pixels: details of the second bar" '"detail":"full: prefill of 400 tokens'
        expect "$width pixels: zoom" '"zoomed":true'
        expect "$width pixels: another run" '"picked":"Simulated run in record folder sim-full, scheme full: 3 requests'
        expect "$width pixels: the table sorts" '"first":"A3"'
        paths=$(sed -n 's/.*"paths":\([0-9]*\).*/\1/p' <<<"$told")
        [ "${paths:-0}" -ge 20 ] || fail "$theme, $width pixels: a timeline of ${paths:-no} paths: $told"
    done
    case $told in *'"paths"'*) fail "$theme: a timeline without a run" ;; esac
    ok "$theme: nothing loaded, nothing on the console, no wider than 1280 and 390 pixels; theme button, timeline ($paths paths), keys, table"
done
finish
