# fig14: TBT against token id, by speculative ratio.
# gnuplot -c fig14.gp fig14.csv fig14.svg|fig14.png wide|narrow PLOTS_FOLDER/; fig14-tokens.csv lies beside fig14.csv
figure = "fig14"
data = ARG1; image = ARG2; layout = ARG3; plots = ARG4
narrow = layout eq "narrow"
load plots."style.gp"
set datafile columnheaders

width = narrow ? 360 : 760
height = narrow ? 320 : 380
load plots."output.gp"

tokens = data[1:strlen(data)-4]."-tokens.csv"
series = "reuse-only 5% 10% 20%"
set xrange [0:65]
set yrange [0:*]
set xtics 8
set xlabel "token id"
set title "TBT (s) against token id"
set key bottom right reverse Left
plot for [s = 1:4] tokens using (column("token")):(strcol("series") eq word(series, s) ? column("gap_s") : NaN) \
    with lines linestyle s linewidth 2 title s == 1 ? "KV reuse only" : "speculative ".word(series, s)
