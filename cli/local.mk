# The program.
bin_PROGRAMS += smartgen
smartgen_CPPFLAGS = $(SMG_CPPFLAGS) $(SMG_DATA_CPPFLAGS) $(JANSSON_CFLAGS)
smartgen_LDADD = libsmartgen.la
smartgen_SOURCES = \
	cli/main.c
