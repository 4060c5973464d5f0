import FerryPostgres
import FerryProtocol
import Foundation

extension NoticeFeed {
  /// Stops at a number of bytes as well, so large values never fill the memory. One operation may
  /// have made two notices for the device, under two of its names. Each name's notices are read in
  /// order, and no more of them than a page may hold.
  private static let rows = PostgresStatement(
    "notices_pull",
    """
    SELECT sequence, body FROM (
      SELECT *, sum(octet_length(body)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING)
        - octet_length(body) AS before
      FROM (
        SELECT sequence, string_agg(body, ',') AS body
        FROM unnest($2::uuid[]) AS name(device), LATERAL (
          SELECT sequence, body FROM notices
          WHERE space = $1 AND device = name.device AND sequence > $3
            AND \(isOwn("$6")) ORDER BY sequence LIMIT $4
        ) AS told
        GROUP BY sequence ORDER BY sequence LIMIT $4
      ) AS listed
    ) AS summed WHERE before < $5 ORDER BY sequence
    """)

  /// Returns the condition under which the principal of a parameter may read the notices of
  /// `name.device`.
  static func isOwn(_ principal: String) -> String {
    """
    EXISTS (SELECT 1 FROM devices AS own WHERE own.space = $1 AND own.device = name.device
      AND own.principal IN (\(principal), 'anonymous'))
    """
  }

  /// Asks for a device's notices after the request's cursor; for none if it names no device.
  static func addQuery(
    for request: PullRequest, in space: Int64, to pipeline: inout PostgresPipeline
  ) {
    if request.device == nil { return }
    var parameters: PostgresParameters = [.int8(space), .array(addressees(of: request))]
    parameters.append(.int8(request.cursor?.received ?? 0))
    parameters.append(.int8(Int64(request.limit)))
    parameters.append(.int8(Int64(request.byteLimit)))
    parameters.append(.text(request.principal.id))
    pipeline.add(Self.rows, parameters)
  }

  /// Returns the devices whose notices to read.
  static func addressees(of request: PullRequest) -> PostgresArray<UUID> {
    var names = PostgresArray<UUID>()
    for device in request.addressees {
      names.append(high: device.value.high, low: device.value.low)
    }
    return names
  }

  /// Creates the answer to this query.
  init(_ rows: PostgresRows, newest: SequenceNumber) throws {
    self.init(
      try rows.map { Row(sequence: try $0.int8(0), body: try $0.bytes(1)) }, newest: newest)
  }
}
