/// The action by which a client can handle an error.
public enum ProblemAction: String, Sendable {
  /// The same request may succeed later.
  case retry
  /// The request itself has to change.
  case fix
  /// The client's view of the space is out of date; it pulls from the start and goes on.
  case resynchronise
}

/// Stable codes of wire errors. New ones may come; the HTTP status gives the meaning of an unknown
/// one.
public enum ProblemCode: String, Sendable, CaseIterable {
  case malformedMessage = "malformed_message"
  case limitExceeded = "limit_exceeded"
  case unsupportedCoding = "unsupported_coding"
  case invalidCursor = "invalid_cursor"
  case unauthorized
  case forbidden
  case deviceTaken = "device_taken"
  case cursorRequired = "cursor_required"
  case storageQuota = "storage_quota"
  case writeQuota = "write_quota"
  case streamQuota = "stream_quota"
  case unknownSpace = "unknown_space"
  case notFound = "not_found"
  case methodNotAllowed = "method_not_allowed"
  case operationRefused = "operation_refused"
  case schemaConflict = "schema_conflict"
  case schemaLosses = "schema_losses"
  case missionConflict = "mission_conflict"
  case uploadConflict = "upload_conflict"
  case contentMismatch = "content_mismatch"
  case uploadQuota = "upload_quota"
  case upgradeRequired = "upgrade_required"
  case bufferFull = "buffer_full"
  case rateLimited = "rate_limited"
  case unsupportedMediaType = "unsupported_media_type"
  case deviceForked = "device_forked"
  case epochChanged = "epoch_changed"
  case cursorAhead = "cursor_ahead"
  case historyLost = "history_lost"
  case cursorExpired = "cursor_expired"
  case lostAndExpired = "lost_and_expired"
  case unavailable
  case internalError = "internal_error"

  /// The action by which a client can handle it.
  public var action: ProblemAction {
    switch self {
    case .bufferFull, .writeQuota, .streamQuota, .rateLimited, .unavailable, .internalError: .retry
    case .deviceForked, .deviceTaken, .epochChanged, .cursorAhead, .historyLost, .cursorExpired,
      .lostAndExpired:
      .resynchronise
    default: .fix
    }
  }

  /// The HTTP status of an answer with it.
  public var status: Int {
    switch self {
    case .malformedMessage, .invalidCursor: 400
    case .unauthorized: 401
    case .forbidden, .deviceTaken: 403
    case .unknownSpace, .notFound: 404
    case .methodNotAllowed: 405
    case .deviceForked, .epochChanged, .cursorAhead, .historyLost, .schemaConflict,
      .schemaLosses, .missionConflict, .uploadConflict:
      409
    case .cursorExpired, .lostAndExpired: 410
    case .limitExceeded: 413
    case .unsupportedCoding, .unsupportedMediaType: 415
    case .operationRefused, .contentMismatch: 422
    case .upgradeRequired: 426
    case .cursorRequired: 428
    case .bufferFull, .writeQuota, .streamQuota, .rateLimited: 429
    case .internalError: 500
    case .unavailable: 503
    case .uploadQuota, .storageQuota: 507
    }
  }

  /// A few words for users.
  public var title: String {
    switch self {
    case .malformedMessage: "The message is malformed"
    case .limitExceeded: "The message is too large"
    case .unsupportedCoding: "The content coding is not supported"
    case .invalidCursor: "The cursor is invalid"
    case .unauthorized: "A valid token is needed"
    case .forbidden: "The token does not allow this"
    case .deviceTaken: "The device identifier belongs to another user"
    case .cursorRequired: "The space accepts packets only with a cursor"
    case .storageQuota: "The storage quota is reached"
    case .writeQuota: "The daily write quota is reached"
    case .streamQuota: "Too many event streams are open"
    case .unknownSpace: "There is no such space"
    case .notFound: "There is nothing at this address"
    case .methodNotAllowed: "The method is not allowed here"
    case .operationRefused: "The packet contains operations that can never be applied"
    case .schemaConflict: "The schema does not fit the space"
    case .schemaLosses: "The schema would drop rules or definitions"
    case .missionConflict: "The mission conflicts with the published missions"
    case .uploadConflict: "The upload continues at another offset"
    case .contentMismatch: "The content is missing or does not match its hash"
    case .uploadQuota: "The quota of unfinished uploads is reached"
    case .upgradeRequired: "The space requires a newer client"
    case .bufferFull: "Too many packets wait for an earlier one"
    case .rateLimited: "Too many requests"
    case .unsupportedMediaType: "The body has the wrong media type"
    case .deviceForked: "Another copy of this device has written"
    case .epochChanged: "The space has a new epoch"
    case .cursorAhead: "The cursor is ahead of the space"
    case .historyLost: "The server lost history that the cursor refers to"
    case .cursorExpired: "The cursor is older than the history"
    case .lostAndExpired: "The cursor is too old, and its history was lost"
    case .unavailable: "The server cannot serve at the moment"
    case .internalError: "The server failed"
    }
  }
}

/// A problem document (RFC 9457) with Ferry's stable `code` and the action for the client.
public struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
  /// The stable code.
  public let code: ProblemCode
  /// The detail of this occurrence, for users.
  public let detail: String
  /// The operations that can never be applied, in order; of ``ProblemCode/operationRefused`` only.
  public let refusals: [Refusal]
  /// The first existing records that do not fit a new schema, by table and identifier; of
  /// ``ProblemCode/schemaConflict`` only.
  public let violations: [SchemaViolation]
  /// The number of all such records, named or not; no fewer than ``violations``.
  public let violationCount: Int
  /// The first rules and definitions dropped by a new schema, such as `the definition of lists`; of
  /// ``ProblemCode/schemaLosses`` only.
  public let losses: [String]
  /// The number of all such rules and definitions, named or not; no fewer than ``losses``.
  public let lossCount: Int

  /// Creates a problem from the given parts.
  public init(
    _ code: ProblemCode, _ detail: String, refusals: [Refusal] = [],
    violations: [SchemaViolation] = [], violationCount: Int = 0, losses: [String] = [],
    lossCount: Int = 0
  ) {
    self.code = code
    self.detail = detail
    self.refusals = refusals
    self.violations = violations
    self.violationCount = max(violationCount, violations.count)
    self.losses = losses
    self.lossCount = max(lossCount, losses.count)
  }

  /// Returns the problem with another detail.
  package func detailed(_ detail: String) -> Problem {
    Problem(
      code, detail, refusals: refusals, violations: violations, violationCount: violationCount,
      losses: losses, lossCount: lossCount)
  }

  public var description: String { "\(code.title): \(detail)" }
}
