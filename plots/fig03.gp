# fig03: (a) TBT and on-demand ratio of three orders as bars, (b) TBT against token id.
# gnuplot -c fig03.gp fig03.csv fig03.svg|fig03.png wide|narrow PLOTS_FOLDER/; fig03-tokens.csv lies beside fig03.csv
figure = "fig03"
data = ARG1; image = ARG2; layout = ARG3; plots = ARG4
narrow = layout eq "narrow"
load plots."style.gp"
set datafile columnheaders

width = narrow ? 360 : 900
height = narrow ? 760 : 360
load plots."output.gp"

tokens = data[1:strlen(data)-4]."-tokens.csv"
orders = "random sequential optimal"
set boxwidth 0.34
set style fill solid 0.75 border
if (narrow) { set multiplot layout 2,1 } else { set multiplot layout 1,2 }

# A narrow page has no room for the names of two axes.
set title narrow ? "(a) TBT (s), left; on-demand ratio, right" : "(a) half transferred"
set xrange [0.4:3.6]
set xtics ("random" 1, "sequential" 2, "optimal" 3) scale 0
if (narrow) { set xtics font font.",11" }
set yrange [0:*]
set y2range [0:1]
if (!narrow) { set ylabel "TBT (s)"; set y2label "on-demand ratio" }
set y2tics 0.2
set border 11
# Room for the legend above the bars.
set offsets 0,0,graph 0.3,0
set key inside top right reverse Left
plot for [o = 1:3] data using (o - 0.18):(strcol("series") eq word(orders, o) ? column("tbt_s") : NaN) \
         with boxes linestyle 1 linewidth 1 title o == 1 ? "TBT" : "", \
     for [o = 1:3] data using (o + 0.18):(strcol("series") eq word(orders, o) ? column("on_demand_ratio") : NaN) axes x1y2 \
         with boxes linestyle 2 linewidth 1 title o == 1 ? "on-demand ratio" : ""

set title "(b) TBT against token id (s)"
set border 3
unset y2tics
set offsets 0,0,0,0
unset y2label
unset ylabel
set autoscale x
set xrange [0:98]
set xtics 16 scale 0.6 font font.",13"
set xlabel "token id"
series = "optimal-reuse ideal"
set key inside bottom right
plot for [s = 1:2] tokens using (column("token")):(strcol("series") eq word(series, s) && column("token") > 2 ? column("gap_s") : NaN) \
    with lines linestyle s title s == 1 ? "optimal and reuse" : "ideal"
unset multiplot
