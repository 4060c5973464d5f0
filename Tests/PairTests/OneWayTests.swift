import Ferry
import TestSupport
import Testing
