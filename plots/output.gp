# Terminal and file of a figure: needs width and height, ARG2 as image and ARG3 as layout, in variables of these names.
if (image[strlen(image)-2:] eq "png") {
    set terminal pngcairo size 2*width,2*height fontscale 1.6 linewidth 2 pointscale 1.6
} else {
    set terminal svg size width,height dynamic font font.",13" name figure."_".layout
}
set output image
