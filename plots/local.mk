# gnuplot styles, one script per figure, the report's template: files only, taken as a folder by install and dist.
