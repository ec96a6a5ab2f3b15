# What all figures share. The colours stay apart under the common kinds of colour blindness, and every series has its own
# point as well.
font = "Helvetica,Arial,sans-serif"
set datafile separator ","
set datafile missing ""
set border 3 linewidth 1
set tics nomirror out scale 0.6
set grid ytics linetype 1 linewidth 0.5 linecolor rgb "#cccccc"
set key noenhanced
# Earlier series are drawn thicker, so that they still show under later ones.
set style line 1 linecolor rgb "#0072b2" linewidth 4.0 pointtype 7 pointsize 1.1
set style line 2 linecolor rgb "#d55e00" linewidth 2.8 pointtype 5 pointsize 0.9
set style line 3 linecolor rgb "#009e73" linewidth 1.6 pointtype 9 pointsize 0.9
set style line 4 linecolor rgb "#cc79a7" linewidth 1.2 pointtype 11 pointsize 0.9
set style line 5 linecolor rgb "#e69f00" linewidth 1.2 pointtype 13 pointsize 1.0
# Lines that may coincide (styles 11 to 15): each is narrower than those under it, broken, and its points are smaller, so that all
# show where one lies on another.
set style line 11 linecolor rgb "#0072b2" linewidth 5.0 pointtype 7 pointsize 1.9
set style line 12 linecolor rgb "#d55e00" linewidth 3.6 pointtype 5 pointsize 1.35 dashtype (14, 6)
set style line 13 linecolor rgb "#009e73" linewidth 2.4 pointtype 9 pointsize 1.1 dashtype (10, 8)
set style line 14 linecolor rgb "#cc79a7" linewidth 1.8 pointtype 11 pointsize 0.8 dashtype (6, 8)
set style line 15 linecolor rgb "#e69f00" linewidth 1.4 pointtype 13 pointsize 0.55 dashtype (3, 8)
set style line 6 linecolor rgb "#56b4e9" linewidth 1.2 pointtype 3 pointsize 0.9
