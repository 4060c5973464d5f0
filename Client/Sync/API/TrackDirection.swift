/// Which way a tracked table's changes go.
public enum TrackDirection: Sendable, Equatable {
  /// This device's changes are sent, and the others' are applied here.
  case twoWay
  /// This device's changes are sent, and nothing is pulled back (seed row S2.1). A change whose
  /// sending failed stays marked, and is sent again when the user says so, or, with `automatic`,
  /// by itself with the next sync (seed row S2.2).
  case uploadOnly(automatic: Bool)
}

extension TrackDirection {
  /// As the file keeps it. A table that was upload-only and is two-way again is `returning` until
  /// a pull brings what was left out.
  var kept: String {
    switch self {
    case .twoWay: "two-way"
    case .uploadOnly(automatic: false): "upload-only"
    case .uploadOnly(automatic: true): "upload-only-automatic"
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
