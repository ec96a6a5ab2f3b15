# fig05: selection frequency, layer by relative token position; one panel per model (rows) and data set (columns).
# gnuplot -c fig05.gp fig05-panels.csv fig05.svg|fig05.png wide|narrow PLOTS_FOLDER/
figure = "fig05"
data = ARG1; image = ARG2; layout = ARG3; plots = ARG4
narrow = layout eq "narrow"
load plots."style.gp"
models = "Llama-3.1-8B Qwen3-8B Qwen3-14B"
datasets = "MultiFieldQA GovReport SAMSum LCC"
width = narrow ? 360 : 1100
height = narrow ? 2500 : 720
load plots."output.gp"

unset grid
unset key
set border 15
set palette defined (0 "#f7fbff", 0.12 "#9ecae1", 0.25 "#2171b5", 0.4 "#08306b")
set cbrange [0:0.4]
set cbtics 0.1
set xrange [0:1]
set yrange [*:*] noextend
set xtics 0.25
set ytics 10 offset 0.5,0
if (narrow) { set multiplot layout 12,1 } else { set multiplot layout 3,4 }
do for [m = 0:2] {
    do for [d = 0:3] {
        set title word(models, m + 1).", ".word(datasets, d + 1) offset 0,-0.6
        if (m == 2 || narrow) { set xlabel "relative position" offset 0,0.5 } else { unset xlabel }
        if (d == 0 || narrow) { set ylabel "layer" } else { unset ylabel }
        if (d == 3 || narrow) { set colorbox } else { unset colorbox }
        plot data index (m * 4 + d) skip 1 using 1:2:3 with image
    }
}
unset multiplot
