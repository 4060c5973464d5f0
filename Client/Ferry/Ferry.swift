// The umbrella that an application imports: the replica, its values, requests and their caches, and
// missions.
@_exported import FerryCaching
@_exported import FerryMissions
@_exported import FerryNetworking
@_exported import FerryPersistence
@_exported import FerryProtocol
@_exported import FerrySyncClient
