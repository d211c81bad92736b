"""Clocks that are off. Each process reads the time from a copy of the kernel's library (vDSO), and here that code is
replaced: a namespace of time does not shift the wall clock, and a preloaded library does not reach etcd, which has no
libc."""
import platform
import struct

# Each makes the system call, and adds seconds to the result if that is the wall clock's. For x86-64.
CODE = {
    b"__vdso_clock_gettime": ("b8e4000000 0f05 85ff 7507 488106", "c3"),
    b"__vdso_gettimeofday": ("b860000000 0f05 4885ff 7407 488107", "c3"),
    b"__vdso_time": ("b8c9000000 0f05 4805", "4885ff 7403 488907 c3"),
}
SYMBOLS = 11
CAN_SHIFT = platform.machine() == "x86_64"


def shift(pid, seconds):
    """Sets the wall clock of a process and its children off by this much."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        place = next(line.split()[0] for line in file if line.endswith("[vdso]\n"))
    begin, end = (int(word, 16) for word in place.split("-"))
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(begin)
        for symbol, offset in _symbols(memory.read(end - begin)):
            if symbol in CODE:
                before, after = (bytes.fromhex(code) for code in CODE[symbol])
                memory.seek(begin + offset)
                memory.write(before + struct.pack("<i", seconds) + after)
    # Later children inherit the copy.
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        children = file.read().split()
    for child in children:
        try:
            shift(int(child), seconds)
        except (OSError, StopIteration):
            # It has ended.
            pass


def _symbols(image):
    """The names of an ELF file's functions, and where they begin."""
    start, = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    # Name, type, flags, address, offset, size, link, information, alignment, size of an entry.
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, start + number * size) for number in range(count)]
    for section in (section for section in sections if section[1] == SYMBOLS):
        names = sections[section[6]][4]
        for entry in range(section[4], section[4] + section[5], 24):
            name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", image, entry)
            yield image[names + name:].split(b"\0", 1)[0], value
