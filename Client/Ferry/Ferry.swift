// The umbrella for applications: the replica, its values, requests and caches, files, missions, and
// behaviours with patches.
@_exported import FerryCaching
@_exported import FerryMissions
@_exported import FerryNetworking
@_exported import FerryPatches
@_exported import FerryPersistence
@_exported import FerryProtocol
@_exported import FerrySyncClient
