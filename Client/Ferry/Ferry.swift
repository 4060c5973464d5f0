// The umbrella that an application imports: the replica, its values, and the transport seam.
@_exported import FerryProtocol
@_exported import Networking
@_exported import SyncClient
