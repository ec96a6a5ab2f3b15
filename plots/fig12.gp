# fig12: TTFT, TTST, TBT against the decode instance's bandwidth, one line per scheme.
# gnuplot -c fig12.gp fig12.csv fig12.svg|fig12.png wide|narrow PLOTS_FOLDER/
figure = "fig12"
data = ARG1; image = ARG2; layout = ARG3; plots = ARG4
narrow = layout eq "narrow"
load plots."style.gp"
set datafile columnheaders

width = narrow ? 360 : 1020
height = narrow ? 960 : 360
load plots."output.gp"

schemes = "full partial hack smartgen-infinigen smartgen-hata"
metrics = "ttft_s ttst_s tbt_s"
titles = "TTFT TTST TBT"
set xrange [13:34]
set yrange [0:*]
set xtics (15, 25, 32)
set xlabel "decode link (Gbit/s)"
if (narrow) { set multiplot layout 3,1 } else { set multiplot layout 1,3 }
do for [i = 1:3] {
    set title word(titles, i)." (s)"
    # Where one value stands for all, say so: only the last line would be looked for.
    stats data using (column(word(metrics, i))) nooutput
    unset label
    if (STATS_max < 1.005*STATS_min) { set label "all schemes coincide" at graph 0.5, first 0.87*STATS_min center }
    # One legend is enough.
    if (i == 1) { set key inside bottom right reverse Left } else { unset key }
    plot for [s = 1:words(schemes)] data using (column("gbps")):(strcol("scheme") eq word(schemes, s) ? column(word(metrics, i)) : NaN) \
        with linespoints linestyle 10+s title word(schemes, s)
}
unset multiplot
