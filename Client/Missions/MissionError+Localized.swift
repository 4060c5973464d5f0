import Foundation

/// A description and a remedy for the app's user. `failureReason` has the detail, for the app's
/// developers.
extension MissionError: LocalizedError {
  public var errorDescription: String? {
    switch kind {
    case .notFound, .retracted: "This content is not available any more."
    case .offline: "The server cannot be reached."
    case .diskFull: "The disk is full."
    case .waiting, .dependency: "Other content has to be downloaded first."
    case .busy: "Another program is downloading this content."
    case .wrongContent, .refused, .badManifest: "The content on the server is not valid."
    case .forbidden: "You are not permitted to download this content."
    case .badSignature, .untrustedSigner: "The content is not from a trusted author."
    case .damaged: "The content on this device is damaged."
    case .wrongKey: "The content on this device cannot be unlocked."
    case .files, .database: "The content on this device cannot be read or written."
    case .cancelled: "The download was cancelled."
    }
  }

  public var failureReason: String? { message }

  public var recoverySuggestion: String? {
    switch kind {
    case .offline, .waiting, .busy: "The download continues by itself."
    case .diskFull: "Free some disk space. The downloaded parts are kept."
    case .damaged: "Download it again."
    case .cancelled: "Start it again. The downloaded parts are kept."
    default: "If this does not pass, contact the app's support."
    }
  }
}

/// A description and a remedy for the app's user. `failureReason` has the detail, for the app's
/// developers.
extension BundleError: LocalizedError {
  public var errorDescription: String? {
    switch kind {
    case .notFound, .notOffered: "This version of the app's pages is not available."
    case .failedHere: "This version of the app's pages has failed on this device."
    case .shellTooOld: "The app is too old for these pages."
    case .nothingToActivate, .notDownloaded: "The app's pages are not downloaded yet."
    case .mission: mission?.errorDescription ?? "The app's pages cannot be downloaded."
    case .database: "The app's pages cannot be read or written."
    }
  }

  public var failureReason: String? { message }

  public var recoverySuggestion: String? {
    switch kind {
    case .shellTooOld: "Install a newer version of the app."
    case .nothingToActivate, .notDownloaded: "Connect to a network, and try again."
    case .mission: mission?.recoverySuggestion ?? "Try again later."
    default: "If this does not pass, contact the app's support."
    }
  }
}

/// A description for the app's user. `failureReason` has the detail, for the app's developers.
extension DownloadError: LocalizedError {
  public var errorDescription: String? {
    switch kind {
    case .offline: "The server cannot be reached."
    case .server, .wrongAnswer: "The server rejects the request."
    case .wrongContent, .changed: "The file on the server has changed or is damaged."
    case .diskFull: "The disk is full."
    case .file: "The file cannot be written."
    case .cancelled: "The download was cancelled."
    case .waiting, .dependency: "Another file has to be downloaded first."
    case .busy: "Another program is downloading this file."
    }
  }

  public var failureReason: String? { message }
}
