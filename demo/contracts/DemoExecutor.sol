// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./AcrossForms.sol";
import "./DemoPair.sol";

/// Delivers deposits of another chain: makes the one call of a message in the form of LI.FI's ReceiverAcrossV4, with tokens of a relayer. It
/// holds nothing between two calls, and calls only the fee proxy, because a call that a stranger chooses could spend the allowances of
/// relayers.
contract DemoExecutor is AcrossForms {
    address public immutable proxy;
    /// By relayer and id of the deposit.
    mapping(address => mapping(bytes32 => bool)) public isDelivered;

    event Delivered(address indexed relayer, bytes32 indexed id, bool isPaid);

    constructor(address proxy_) {
        proxy = proxy_;
    }

    /// The contract that makes the calls, as LI.FI's receivers answer it; here the receiver itself.
    function EXECUTOR() external view returns (address) {
        return address(this);
    }

    /// Delivers a deposit once. The receiver in the message gets what the call leaves over: everything when the call fails or is not to the proxy.
    function deliver(bytes32 id, uint256 until, address token, uint256 amount, bytes calldata message) external {
        require(block.timestamp <= until, "too late");
        require(!isDelivered[msg.sender][id], "delivered already");
        isDelivered[msg.sender][id] = true;
        (, SwapData[] memory calls, address fallbackTo) = abi.decode(message, (bytes32, SwapData[], address));
        AnyToken.pull(token, msg.sender, address(this), amount);
        bool isPaid = false;
        if (calls.length == 1 && calls[0].callTo == proxy) {
            AnyToken.approve(token, proxy, amount);
            (isPaid,) = proxy.call(calls[0].callData);
        }
        uint256 left = IBalance(token).balanceOf(address(this));
        if (left > 0) {
            AnyToken.approve(token, proxy, 0);
            AnyToken.send(token, fallbackTo, left);
        }
        emit Delivered(msg.sender, id, isPaid);
    }
}
