# fig02: prefill and full transfer time, (a) bars for three models, (b) lines against batched tokens.
# gnuplot -c fig02.gp fig02.csv fig02.svg|fig02.png wide|narrow PLOTS_FOLDER/
figure = "fig02"
data = ARG1; image = ARG2; layout = ARG3; plots = ARG4
narrow = layout eq "narrow"
load plots."style.gp"
set datafile columnheaders
# The rows of a line are not neighbours: it must not break at the others.
set datafile missing NaN

width = narrow ? 360 : 900
height = narrow ? 760 : 360
load plots."output.gp"

models = "llama-3.1-8b qwen3-8b qwen3-14b"
set yrange [0:*]
set boxwidth 0.18
set style fill solid 0.75 border
if (narrow) { set multiplot layout 2,1 } else { set multiplot layout 1,2 }

set title "(a) 48K batched tokens (s)"
set xrange [0.4:3.6]
set xtics ("Llama-3.1-8B" 1, "Qwen3-8B" 2, "Qwen3-14B" 3) scale 0
# Room for the legend above the bars.
set offsets 0,0,graph 0.35,0
set key top left reverse Left
plot for [m = 1:3] data using (m - 0.3):(strcol("case") eq word(models, m)."-dp6" && column("gbps") == 25 ? column("tp_s") : NaN) \
         with boxes linestyle 1 linewidth 1 title m == 1 ? "prefill, DP 6" : "", \
     for [m = 1:3] data using (m - 0.1):(strcol("case") eq word(models, m)."-dp4" && column("gbps") == 25 ? column("tp_s") : NaN) \
         with boxes linestyle 6 linewidth 1 title m == 1 ? "prefill, DP 4" : "", \
     for [m = 1:3] data using (m + 0.1):(strcol("case") eq word(models, m)."-dp6" && column("gbps") == 25 ? column("tt_s") : NaN) \
         with boxes linestyle 3 linewidth 1 title m == 1 ? "transfer, 25 Gbit/s" : "", \
     for [m = 1:3] data using (m + 0.3):(strcol("case") eq word(models, m)."-dp6" && column("gbps") == 15 ? column("tt_s") : NaN) \
         with boxes linestyle 2 linewidth 1 title m == 1 ? "transfer, 15 Gbit/s" : ""

set title "(b) Qwen3-14B (s)"
if (narrow) { set offsets 0,0,graph 0.3,0 } else { set offsets 0,0,0,0 }
set xrange [8:64]
set xtics ("12K" 12, "24K" 24, "36K" 36, "48K" 48, "60K" 60) scale 0.6
set xlabel "batched tokens"
# The second word of a case of (b) is its GPU; the tokens are its KV bytes.
is(case, gpu) = case[strlen(case)-strlen(gpu):] eq "-".gpu
tokens(bytes) = bytes / 163840 / 1000
plot data using (tokens(column("kv_bytes"))):(is(strcol("case"), "l20") && column("gbps") == 25 ? column("tp_s") : NaN) \
         with linespoints linestyle 1 title "prefill, L20", \
     data using (tokens(column("kv_bytes"))):(is(strcol("case"), "a100") && column("gbps") == 25 ? column("tp_s") : NaN) \
         with linespoints linestyle 4 linewidth 2 title "prefill, A100", \
     data using (tokens(column("kv_bytes"))):(is(strcol("case"), "l20") && column("gbps") == 25 ? column("tt_s") : NaN) \
         with linespoints linestyle 3 linewidth 2 title "transfer, 25 Gbit/s", \
     data using (tokens(column("kv_bytes"))):(is(strcol("case"), "l20") && column("gbps") == 15 ? column("tt_s") : NaN) \
         with linespoints linestyle 2 title "transfer, 15 Gbit/s"
unset multiplot
