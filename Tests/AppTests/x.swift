import Testing
import AsyncHTTPClient
import Yams
