# fig15: rankings; TBT speed-up over random and on-demand ratio, grouped by model; one row of panels per budget.
# gnuplot -c fig15.gp fig15.csv fig15.svg|fig15.png wide|narrow PLOTS_FOLDER/
figure = "fig15"
data = ARG1; image = ARG2; layout = ARG3; plots = ARG4
narrow = layout eq "narrow"
load plots."style.gp"
set datafile columnheaders

width = narrow ? 360 : 1020
height = narrow ? 1300 : 640
load plots."output.gp"

models = "llama-3.1-8b qwen3-8b qwen3-14b gemma-3-12b phi-4"
rankings = "random sequential streamingllm profile optimal"
budgets = "half default"
metrics = "tbt_speedup on_demand_ratio"
set xrange [0.4:5.6]
set xtics ("Llama-3.1" 1, "Qwen3-8B" 2, "Qwen3-14B" 3, "Gemma-3" 4, "Phi-4" 5) scale 0
if (narrow) { set xtics ("Llama\n3.1-8B" 1, "Qwen3\n8B" 2, "Qwen3\n14B" 3, "Gemma\n3-12B" 4, "Phi-4" 5) font font.",11"; set bmargin 3 }
set boxwidth 0.15
set style fill solid 0.75 border
if (narrow) { set multiplot layout 4,1 } else { set multiplot layout 2,2 }
do for [b = 1:2] {
    do for [i = 1:2] {
        set title (i == 1 ? "TBT speed-up over random" : "on-demand ratio").(b == 1 ? ", half transferred" : ", default Kr")
        if (i == 1) { set yrange [0:*] } else { set yrange [0:1] }
        if (b == 1 && i == 2) { set key top right horizontal } else { unset key }
        # A narrow legend needs room above the bars.
        if (narrow && b == 1 && i == 2) { set yrange [0:1.9]; set ytics 0,0.2,1 } else { set ytics autofreq }
        plot for [r = 1:5] for [m = 1:5] data using (m + 0.16 * (r - 3)):(strcol("budget") eq word(budgets, b) && \
            strcol("model") eq word(models, m) && strcol("ranking") eq word(rankings, r) ? column(word(metrics, i)) : NaN) \
            with boxes linestyle r linewidth 1 title m == 1 ? word(rankings, r) : ""
    }
}
unset multiplot
