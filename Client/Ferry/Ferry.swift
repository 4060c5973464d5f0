// The umbrella that an application imports: the replica, its values, its missions, and the
// transport seam.
@_exported import FerryProtocol
@_exported import Missions
@_exported import Networking
@_exported import SyncClient
