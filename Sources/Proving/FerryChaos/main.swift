import FerryCommandLine

await CommandRunner.main(ChaosCommand.specification)
