/// The direction of a tracked table's changes.
public enum TrackDirection: Sendable, Equatable {
  /// This device's changes are sent, and the others' changes are applied here.
  case twoWay
  /// This device's changes are sent, and none are pulled (SPEC.md §17). A change stays marked after
  /// a failed upload until the user retries it. With `automatic`, the next sync retries it by
  /// itself. With `fill`, the next pull applies the rows of the space, once.
  case uploadOnly(automatic: Bool, fill: Bool = false)
}

extension TrackDirection {
  /// The direction as stored in the file. An upload-only table made two-way again is `returning`
  /// until a pull fetches the missing records.
  var kept: String {
    switch self {
    case .twoWay: "two-way"
    case .uploadOnly(automatic: false, fill: _): "upload-only"
    case .uploadOnly(automatic: true, fill: _): "upload-only-automatic"
    }
  }

  init(kept: String) {
    switch kept {
    case "upload-only": self = .uploadOnly(automatic: false)
    case "upload-only-automatic": self = .uploadOnly(automatic: true)
    default: self = .twoWay
    }
  }
}
