# fig11: TTFT, TTST and TBT against batch size, one line per scheme.
# gnuplot -c fig11.gp fig11.csv fig11.svg|fig11.png wide|narrow PLOTS_FOLDER/
data = ARG1
narrow = ARG3 eq "narrow"
load ARG4."style.gp"

width = narrow ? 360 : 1020
height = narrow ? 900 : 340
if (ARG2[strlen(ARG2)-2:] eq "png") {
    set terminal pngcairo size 2*width,2*height fontscale 1.6 linewidth 2 pointscale 1.6
} else {
    set terminal svg size width,height dynamic font font.",13" name "fig11_".ARG3
}
set output ARG2

schemes = "full partial smartgen"
panels = "ttft_s ttst_s tbt_s"
titles = "TTFT TTST TBT"
set xrange [0.7:6.3]
set yrange [0:*]
set xtics 1
set xlabel "batch size (requests)"
if (narrow) { set multiplot layout 3,1 } else { set multiplot layout 1,3 }
do for [i = 1:3] {
    set title word(titles, i)." (s)"
    # One legend is enough.
    if (i == 1) { set key bottom right reverse Left } else { unset key }
    plot for [s = 1:words(schemes)] data skip 1 using 2:(strcol(1) eq word(schemes, s) ? column(2 + i) : NaN) \
        with linespoints linestyle s title word(schemes, s)
}
unset multiplot
