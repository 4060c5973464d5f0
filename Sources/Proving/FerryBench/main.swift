import FerryCommandLine

await CommandRunner.main(BenchCommand.specification)
