// The umbrella that an application imports: the replica, its values, requests and their caches, and
// missions.
@_exported import Caching
@_exported import FerryProtocol
@_exported import Missions
@_exported import Networking
@_exported import SyncClient
