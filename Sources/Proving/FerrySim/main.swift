import FerryCommandLine
import FerrySimulation

World.dedicateProcess()
await CommandRunner.main(SimCommand.specification)
