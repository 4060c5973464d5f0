import FerryCommandLine

await CommandRunner.main(FerryCommand.specification)
