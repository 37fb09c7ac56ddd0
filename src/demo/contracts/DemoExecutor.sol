// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./DemoPair.sol";

/// Delivers what was carried from another chain: calls a fee proxy with a relayer's tokens. It holds nothing between two calls, and calls
/// nothing else: a call of a stranger's choice could spend what relayers allow it to pull.
contract DemoExecutor {
    address public immutable proxy;
    /// By relayer and deposit.
    mapping(address => mapping(bytes32 => bool)) public isDelivered;

    event Delivered(address indexed relayer, bytes32 indexed id, bool isPaid);

    constructor(address proxy_) {
        proxy = proxy_;
    }

    /// Each deposit once. Where the call fails, all goes to `fallbackTo`.
    function deliver(
        bytes32 id,
        uint256 until,
        address token,
        uint256 amount,
        bytes calldata call,
        address fallbackTo
    ) external {
        require(block.timestamp <= until, "too late");
        require(!isDelivered[msg.sender][id], "delivered already");
        isDelivered[msg.sender][id] = true;
        AnyToken.move(
            token, abi.encodeWithSignature("transferFrom(address,address,uint256)", msg.sender, address(this), amount)
        );
        AnyToken.move(token, abi.encodeWithSignature("approve(address,uint256)", proxy, amount));
        (bool isPaid,) = proxy.call(call);
        uint256 left = IBalance(token).balanceOf(address(this));
        if (left > 0) {
            AnyToken.move(token, abi.encodeWithSignature("approve(address,uint256)", proxy, 0));
            AnyToken.move(token, abi.encodeWithSignature("transfer(address,uint256)", fallbackTo, left));
        }
        emit Delivered(msg.sender, id, isPaid);
    }
}
