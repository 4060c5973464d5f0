import FerryPostgres
import FerryProtocol
import Foundation

/// The names of a space's devices.
struct PostgresDeviceNames {
  let space: Int64

  /// The space's lock comes before those of its devices, as in all writes.
  private static let lock = PostgresStatement(
    "device_name_lock", "SELECT 1 FROM spaces WHERE id = $1 FOR UPDATE")

  private static let save = PostgresStatement(
    "device_name_save",
    """
    WITH changed AS (
      UPDATE devices SET name = $4
      WHERE space = $1 AND device = $2 AND principal = $3 AND name IS DISTINCT FROM $4 RETURNING 1
    ), counted AS (
      UPDATE spaces SET name_changes = name_changes + 1
      WHERE id = $1 AND EXISTS (SELECT 1 FROM changed)
    ) SELECT EXISTS (
      SELECT 1 FROM devices WHERE space = $1 AND device = $2 AND principal = $3)
    """)

  private static let find = PostgresStatement(
    "device_names",
    """
    SELECT wanted.device, found.name
    FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted(device, place) CROSS JOIN LATERAL (
      SELECT d.name FROM devices AS d
      WHERE d.space = $1 AND d.device = wanted.device AND d.name IS NOT NULL OFFSET 0
    ) AS found ORDER BY wanted.place
    """)

  private static let owner = PostgresStatement(
    "device_owner", "SELECT principal FROM devices WHERE space = $1 AND device = $2")

  /// Returns the owner of a device; `nil` if it has none.
  func owner(of device: DeviceID, on connection: PostgresConnection) throws -> Principal? {
    var parameters: PostgresParameters = [.int8(space)]
    parameters.append(uuidBytes: device.value.bytes)
    return try connection.query(Self.owner, parameters).map { try $0.text(0) }.first
      .map { Principal($0) ?? .anonymous }
  }

  func set(
    _ name: DeviceName?, of device: DeviceID, by principal: Principal,
    on connection: PostgresConnection
  ) throws -> Bool {
    try connection.transaction { connection in
      let found = try connection.pipeline { pipeline in
        pipeline.add(Self.lock, [.int8(space)])
        var parameters: PostgresParameters = [.int8(space)]
        parameters.append(uuidBytes: device.value.bytes)
        parameters.append(.text(principal.id))
        parameters.append(.text(name?.text))
        pipeline.add(Self.save, parameters)
        pipeline.commit()
      }
      return try found[1][0].bool(0)
    }
  }

  func names(
    of devices: [DeviceID], on connection: PostgresConnection
  ) throws -> [NamedDevice] {
    let count = devices.count
    var wanted = PostgresArray<UUID>(reserving: count, valueBytes: count * 16)
    for device in devices { wanted.append(high: device.value.high, low: device.value.low) }
    return try connection.query(Self.find, [.int8(space), .array(wanted)]).compactMap { row in
      guard let device = DeviceID(uuidBytes: try row.uuidBytes(0)),
        let name = DeviceName(stored: try row.text(1))
      else { return nil }
      return NamedDevice(device, name)
    }
  }
}

extension PostgresStore {
  package func setDeviceName(
    _ name: DeviceName?, of device: DeviceID, in space: Int64, by principal: Principal
  ) async throws(StoreError) -> Bool {
    let names = PostgresDeviceNames(space: space)
    return try await run { try names.set(name, of: device, by: principal, on: $0) }
  }

  package func deviceNames(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [NamedDevice] {
    let names = PostgresDeviceNames(space: space)
    return try await run(in: .pull) { try names.names(of: devices, on: $0) }
  }
}
