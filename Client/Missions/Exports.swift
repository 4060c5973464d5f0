// A file's lock is part of the seam MissionFiles; the calls on files are part of the package's.
@_exported public import FerryFiles
