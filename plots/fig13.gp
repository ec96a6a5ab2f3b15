# fig13: factor analysis, TTST and TBT, grouped by data set; one pair of panels per GPU.
# gnuplot -c fig13.gp fig13.csv fig13.svg|fig13.png wide|narrow PLOTS_FOLDER/
figure = "fig13"
data = ARG1; image = ARG2; layout = ARG3; plots = ARG4
narrow = layout eq "narrow"
load plots."style.gp"
set datafile columnheaders

width = narrow ? 360 : 1020
height = narrow ? 1300 : 640
load plots."output.gp"

gpus = "l20 v100s"
names = "L20 V100S"
sets = "multifieldqa govreport samsum lcc"
steps = "full partial profile parallel speculative"
titles = "full partial +profile +parallel +speculative"
metrics = "ttst_s tbt_s"
heads = "TTST TBT"
set yrange [0:*]
set xrange [0.4:4.6]
set xtics ("MultiFieldQA" 1, "GovReport" 2, "SAMSum" 3, "LCC" 4) scale 0
if (narrow) { set xtics ("Multi-\nFieldQA" 1, "Gov-\nReport" 2, "SAMSum" 3, "LCC" 4); set bmargin 3 }
set boxwidth 0.15
set style fill solid 0.75 border
if (narrow) { set multiplot layout 4,1 } else { set multiplot layout 2,2 }
do for [g = 1:2] {
    do for [i = 1:2] {
        set title word(heads, i)." (s), ".word(names, g)
        if (g == 1 && i == 1) { set key top right reverse Left } else { unset key }
        # A narrow legend needs room above the bars.
        if (narrow && g == 1 && i == 1) { set offsets 0,0,graph 0.9,0 } else { set offsets 0,0,0,0 }
        plot for [s = 1:5] for [d = 1:4] data using (d + 0.16 * (s - 3)):(strcol("gpu") eq word(gpus, g) && \
            strcol("dataset") eq word(sets, d) && strcol("step") eq word(steps, s) ? column(word(metrics, i)) : NaN) \
            with boxes linestyle s linewidth 1 title d == 1 ? word(titles, s) : ""
    }
}
unset multiplot
