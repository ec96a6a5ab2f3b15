# Shared by what the scripts vm_*.sh run in the virtual machine. For sh.

# fail CHECK [FILE...]
fail() {
    echo "FAIL $1"
    shift
    [ $# -eq 0 ] || tail -n 40 "$@"
    exit 1
}

# counter DEVICE NAME: of an RDMA device.
counter() {
    cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}

export SMARTGEN_DATA=/src/traces/data
